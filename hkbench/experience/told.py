"""What a run folder tells of one problem: its judged samples with their codes, and the hints that prompts showed."""

from __future__ import annotations

from dataclasses import dataclass

from hkbench.experience.fingerprint import Fingerprint
from hkbench.records import Hint, SampleKey, Stage, Standing, Status, Verdict

_STAGES = {stage: number for number, stage in enumerate(Stage)}


@dataclass(frozen=True, eq=False)
class Told(Standing):
    """A judged sample."""

    key: SampleKey
    verdict: Verdict
    code: str | None
    mark: Fingerprint | None  #: of its failure
    parent: SampleKey | None  #: the sample that its prompt told of, or that its code was made from

    @property
    def status(self) -> Status | None:
        return self.verdict.status

    @property
    def gain(self) -> tuple[float, float | None, float | None] | None:
        found = self.verdict.speedup
        return (found.value, found.low, found.high) if found is not None else None

    @property
    def unsettled(self) -> bool:
        return self.verdict.unsettled

    @property
    def findings(self) -> int:
        return self.verdict.compiler_findings

    @property
    def sound(self) -> bool:
        """Correct; where nothing is run, compiled."""
        return self.correct or self.compiled

    def came_further(self, failed: Told) -> bool:
        """Tell whether it is past the failure of another sample.

        It is sound, fails at a later stage, or at the same one with another message: compilers show one mistake after
        the other.
        """
        mine, other = self.verdict.failure, failed.verdict.failure
        if self.sound or mine is None or other is None or self.mark is None or failed.mark is None:
            return self.sound
        if mine.stage is not other.stage:
            return _STAGES[mine.stage] > _STAGES[other.stage]
        return self.mark.by_message and failed.mark.by_message and self.mark.digest != failed.mark.digest


@dataclass(frozen=True)
class ToldProblem:
    """One problem of a run."""

    run: str
    name: str
    samples: dict[SampleKey, Told]  #: in the order of their numbers
    hints: dict[int, tuple[Hint, ...]]  #: by attempt, what its prompt showed
