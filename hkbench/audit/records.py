"""What an audit of a problem found. No torch: the engine and the command line read it too."""

from __future__ import annotations

from enum import StrEnum

from hkbench.records import Record


class ControlClass(StrEnum):
    """What it says of a problem when a control passes its check."""

    NULL = "null"  #: the work was not done: the problem is weak
    CLOSE = "close"  #: the work was done by another formula: says how sharp the tolerance is, no more
    PRECISION = "precision"  #: the work was done in fewer bits: the same


class Passed(Record):
    """A control that passed every trial of a check."""

    control: str
    kind: ControlClass


class CheckAudit(Record):
    """One check of one problem: `kernelbench` or `hkbench`."""

    check: str
    trials: int
    tried: tuple[str, ...]  #: the controls that gave an answer of the right form in the first trial
    passed: tuple[Passed, ...]

    @property
    def null(self) -> tuple[str, ...]:
        """The null controls that passed; none of them means that the problem holds under this check."""
        return tuple(item.control for item in self.passed if item.kind is ControlClass.NULL)

    @property
    def close(self) -> tuple[str, ...]:
        return tuple(item.control for item in self.passed if item.kind is not ControlClass.NULL)


class ProblemAudit(Record):
    """Both checks of one problem."""

    problem: str
    number: int
    level: int | None
    sha256: str
    sizes: str  #: "full", "cpu" or "scaled"
    scaled: dict[str, str]  #: constants that the audit changed: name -> "16384 -> 128"
    notes: tuple[str, ...]
    kernelbench: CheckAudit
    hkbench: CheckAudit
    seconds: float
