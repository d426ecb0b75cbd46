"""What a verdict, and a problem by its best sample, comes to: one class, one name, one sign and one colour everywhere.

The classes go by the 95 % interval of the speed-up, so that a measurement which cannot tell the two sides apart is not
counted as a win. `Status`, exit codes and "solved" go by the estimate alone: correct, speed-up of at least 1.0. On an
emulated GPU, which no time can be measured on, a correct sample has no speed-up, and is solved.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeVar

from hkbench.records.verdict import Status, Verdict


class Outcome(StrEnum):
    """Members are ordered from best to worst; reports and displays list them in this order."""

    FASTER = "faster"  #: correct, and the whole interval of the speed-up is above 1
    ON_PAR = "on_par"  #: correct, and the interval contains 1
    SLOWER = "slower"  #: correct, and the whole interval is below 1
    UNSETTLED = "unsettled"  #: correct, and timed beside other work: neither speed-up nor interval can be relied on
    EMULATED = "emulated"  #: correct on an emulated GPU, whose times say nothing
    WRONG = "wrong"  #: failed at any stage: `Status.INCORRECT`
    REFUSED = "refused"  #: right answers that do not count: `Status.REFUSED`
    COMPILED = "compiled"  #: built and never run (a run of --build-only)
    NOT_JUDGED = "not_judged"  #: no verdict

    @property
    def label(self) -> str:
        """The name in prose: "on a par"."""
        return _LOOKS[self][0]

    @property
    def sign(self) -> str:
        """One character, different for each class."""
        return _LOOKS[self][1]

    @property
    def style(self) -> str:
        """The colour on a terminal, as rich names it; report.html has a CSS variable of the same hue."""
        return _LOOKS[self][2]


_LOOKS = {
    Outcome.FASTER: ("faster", "+", "green"),
    Outcome.ON_PAR: ("on a par", "=", "cyan"),
    Outcome.SLOWER: ("slower", "-", "yellow"),
    Outcome.UNSETTLED: ("unsettled", "~", "bright_yellow"),
    Outcome.EMULATED: ("emulated: correct", "e", "bright_green"),
    Outcome.WRONG: ("wrong", "×", "red"),
    Outcome.REFUSED: ("refused", "!", "magenta"),
    Outcome.COMPILED: ("compiled", "c", "blue"),
    Outcome.NOT_JUDGED: ("not judged", "?", "bright_black"),
}

#: Classes of a correct sample by its interval.
SETTLED = (Outcome.FASTER, Outcome.ON_PAR, Outcome.SLOWER)
#: Classes of a correct sample that was timed.
TIMED = (*SETTLED, Outcome.UNSETTLED)
CORRECT = (*TIMED, Outcome.EMULATED)
#: Classes of a problem without a correct sample, the most telling first.
_OTHERWISE = (Outcome.REFUSED, Outcome.COMPILED, Outcome.WRONG)


def outcome_of(
    status: Status | None,
    speedup: float | None = None,
    low: float | None = None,
    high: float | None = None,
    *,
    unsettled: bool = False,
) -> Outcome:
    """Classify a sample. `low` and `high` are the 95 % interval of `speedup`; `status` is `None` without a verdict.

    `unsettled`: it was timed beside other work, so that its interval says nothing.

    A correct sample whose record has no interval (a journal of an older version) is classified by its estimate.
    """
    match status:
        case None:
            return Outcome.NOT_JUDGED
        case Status.INCORRECT:
            return Outcome.WRONG
        case Status.REFUSED:
            return Outcome.REFUSED
        case Status.COMPILED:
            return Outcome.COMPILED
        case Status.EMULATED:
            return Outcome.EMULATED
        case Status.FAST | Status.SLOW:
            if speedup is None:
                raise ValueError("a correct sample has a speed-up")
            if unsettled:
                return Outcome.UNSETTLED
            if (low if low is not None else speedup) > 1.0:
                return Outcome.FASTER
            return Outcome.SLOWER if (high if high is not None else speedup) < 1.0 else Outcome.ON_PAR


#: What ends a problem: no verdict on the same device says more of a kernel than that.
SOLVED = frozenset({Status.FAST, Status.EMULATED})


class Standing:
    """Say what the verdict on a sample comes to: here alone *judged*, *correct*, *solved* and *best* are defined."""

    __slots__ = ()

    @property
    def status(self) -> Status | None:
        """Return the status of the verdict; `None` without one."""
        raise NotImplementedError

    @property
    def gain(self) -> tuple[float, float | None, float | None] | None:
        """Return the speed-up of a correct sample with its 95 % interval, as far as that is known; `None` of others.

        A correct sample of an emulated GPU has none.
        """
        raise NotImplementedError

    @property
    def unsettled(self) -> bool:
        """Tell whether it was timed beside other work, so that its speed-up cannot be relied on."""
        return False

    @property
    def findings(self) -> int:
        """Return the number of findings in the compiler's figures: fewer is better where no time is measured."""
        raise NotImplementedError

    @property
    def judged(self) -> bool:
        """Tell whether there is a verdict on the sample's correctness."""
        return self.status is not None and not self.compiled

    @property
    def compiled(self) -> bool:
        """Tell whether it was built where nothing is run: it is neither correct nor incorrect."""
        return self.status is Status.COMPILED

    @property
    def correct(self) -> bool:
        """Tell whether it is correct, whatever its speed; one whose right answers do not count is not."""
        return self.status in (Status.FAST, Status.SLOW, Status.EMULATED)

    @property
    def refused(self) -> bool:
        """Tell whether the answers were right and do not count."""
        return self.status is Status.REFUSED

    @property
    def solved(self) -> bool:
        """Tell whether it is correct and at least as fast as the baseline; on an emulated GPU just correct."""
        return self.status in SOLVED

    @property
    def outcome(self) -> Outcome:
        """Return its class, by the interval of its speed-up."""
        return outcome_of(self.status, *(self.gain or (None, None, None)), unsettled=self.unsettled)


class ByVerdict(Standing):
    """Stand as a whole verdict says, where there is one."""

    __slots__ = ()
    verdict: Verdict | None

    @property
    def status(self) -> Status | None:
        return self.verdict.status if self.verdict is not None else None

    @property
    def gain(self) -> tuple[float, float | None, float | None] | None:
        found = self.verdict.speedup if self.verdict is not None else None
        return (found.value, found.low, found.high) if found is not None else None

    @property
    def unsettled(self) -> bool:
        return self.verdict is not None and self.verdict.unsettled

    @property
    def findings(self) -> int:
        return self.verdict.compiler_findings if self.verdict is not None else 0

    @property
    def sound(self) -> bool:
        """Correct; where nothing is run, compiled: a kernel to optimise, not one to mend."""
        return self.correct or self.compiled


def speedup_of(sample: Standing | None) -> float | None:
    """Return the speed-up of a correct sample; `None` where it has none, or there is no sample."""
    return sample.gain[0] if sample is not None and sample.gain is not None else None


def score_of(sample: Standing) -> tuple[bool, float, int]:
    """Return what a correct sample counts with in the choice of the best one, larger is better.

    Its speed-up, where that is settled; where no time is measured, that the compiler's figures have fewer findings
    (spills, few waves).
    """
    return (not sample.unsettled, speedup_of(sample) or 0.0, -sample.findings)


Judged = TypeVar("Judged", bound=Standing)


def best_of(samples: Iterable[Judged]) -> Judged | None:
    """Return the correct sample with the best `score_of`, of equals the first; `None` where none is correct."""
    return max((one for one in samples if one.correct), key=score_of, default=None)


def problem_outcome(samples: Iterable[Standing]) -> Outcome:
    """Return the class of a problem by its samples: that of the best one.

    Without a correct sample a problem is refused if any sample was, else compiled, else wrong.
    """
    found = list(samples)
    best = best_of(found)
    if best is not None:
        return best.outcome
    seen = {one.outcome for one in found}
    return next((outcome for outcome in _OTHERWISE if outcome in seen), Outcome.NOT_JUDGED)
