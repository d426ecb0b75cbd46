"""What a run folder tells of one problem: its judged samples with their codes, and the hints that prompts showed."""

from __future__ import annotations

from dataclasses import dataclass

from hkbench.experience.fingerprint import Fingerprint
from hkbench.records import ByVerdict, Hint, SampleKey, Verdict


@dataclass(frozen=True, eq=False)
class Told(ByVerdict):
    """A judged sample."""

    key: SampleKey
    verdict: Verdict
    code: str | None
    mark: Fingerprint | None  #: of its failure
    parent: SampleKey | None  #: the sample that its prompt told of, or that its code was made from

    def came_further(self, failed: Told) -> bool:
        """Tell whether it is past the failure of another sample.

        It is sound, fails at a later stage, or at the same one with another message: compilers show one mistake after
        the other.
        """
        mine, other = self.verdict.failure, failed.verdict.failure
        if self.sound or mine is None or other is None or self.mark is None or failed.mark is None:
            return self.sound
        if mine.stage is not other.stage:
            return mine.stage.place > other.stage.place
        return self.mark.by_message and failed.mark.by_message and self.mark.digest != failed.mark.digest


@dataclass(frozen=True)
class ToldProblem:
    """One problem of a run."""

    run: str
    name: str
    samples: dict[SampleKey, Told]  #: in the order of their numbers
    hints: dict[int, tuple[Hint, ...]]  #: by attempt, what its prompt showed
