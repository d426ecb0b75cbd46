"""A generation on its way: reply, candidate, verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hkbench.records import Candidate, Extraction, Reply, SampleKey, Stage, Status, Verdict

_STAGES = {stage: number for number, stage in enumerate(Stage)}


@dataclass(frozen=True)
class Sample:
    """One of the N generations of an attempt."""

    key: SampleKey
    reply: Reply
    extraction: Extraction
    candidate: Candidate | None
    verdict: Verdict | None = None

    @property
    def correct(self) -> bool:
        """Whatever its speed; not one whose right answers do not count."""
        return self.verdict is not None and self.verdict.status in (Status.FAST, Status.SLOW)

    @property
    def compiled(self) -> bool:
        """Built where nothing is run: neither correct nor incorrect."""
        return self.verdict is not None and self.verdict.status is Status.COMPILED

    @property
    def sound(self) -> bool:
        """Correct; where nothing is run, compiled: a kernel to optimise, not one to mend."""
        return self.correct or self.compiled

    @property
    def solved(self) -> bool:
        """Correct and at least as fast as the baseline."""
        return self.verdict is not None and self.verdict.status is Status.FAST

    @property
    def succeeded(self) -> bool:
        """Solved; where nothing is run, compiled: no verdict of such a run says more."""
        return self.solved or self.compiled


def rank(verdict: Verdict) -> tuple[float, float, float]:
    """Larger is better: correct before incorrect; then the speed-up; else how far it came and how little is wrong.

    Of kernels that were only compiled the one with fewer findings of the compiler's figures.
    """
    if verdict.speedup is not None:
        return (2.0, verdict.speedup.value, 0.0)
    if verdict.failure is None:
        return (1.0, -float(sum(len(kernel.findings) for kernel in verdict.resources)), 0.0)
    found = verdict.failure.mismatch
    right = 1.0 - found.wrong_elements / max(found.elements, 1) if found else 0.0
    return (0.0, float(_STAGES[verdict.failure.stage]), right)


def best_of(samples: Sequence[Sample]) -> Sample:
    """The best judged sample; of equals the first."""
    judged = [sample for sample in samples if sample.verdict is not None]
    return max(judged, key=lambda sample: (rank(sample.verdict), -sample.key.sample))  # type: ignore[arg-type]


def replaces(new: Verdict, best: Verdict) -> bool:
    """Whether the best verdict of a later attempt takes the place of the best so far.

    Of equals the first stays; of those that were only compiled the last, which was written to be the better one.
    """
    if new.status is Status.COMPILED and rank(new) == rank(best):
        return True
    return rank(new) > rank(best)
