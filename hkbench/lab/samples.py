"""A generation on its way: reply, candidate, verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hkbench.categories import StageGuide
from hkbench.prompts import Reflection, SynthesisTask, Tried
from hkbench.records import ByVerdict, Candidate, Extraction, QuestionKind, Reply, SampleKey, Status, Verdict


@dataclass(frozen=True)
class Attempt:
    """What is known of an attempt when it begins, for a strategy to describe it."""

    number: int
    parent: SampleKey | None = None  #: the sample that it starts from
    stage: str | None = None  #: of the problem's category
    question: QuestionKind | None = None  #: that a judge was asked before it
    rule: str | None = None  #: that made its code, where no model is asked


@dataclass(frozen=True)
class Ask:
    """An attempt to be begun: the model writes `samples` candidates."""

    parent: Sample | None = None  #: the sample to start from, to whose code diffs apply
    hint: Reflection | None = None  #: what the prompt says of earlier samples
    samples: int = 1
    stage: StageGuide | None = None  #: what the prompt says to do
    profile: bool = True  #: False: correct kernels are not profiled, whatever the run's settings say
    task: SynthesisTask | None = None  #: what agents say of it


@dataclass(frozen=True)
class Proposal:
    """An attempt to be begun with code that no model wrote."""

    source: str
    by: str  #: what made it: the name of a rule, of a patch
    parent: Sample | None = None  #: the sample that it was made from
    again: bool = False  #: the same code is measured anew, though it has a verdict
    profile: bool = True  #: as of `Ask`


@dataclass(frozen=True)
class Sample(ByVerdict):
    """One of the N candidates of an attempt, on its way to a verdict."""

    key: SampleKey
    reply: Reply | None  #: `None`: no model was asked
    extraction: Extraction
    candidate: Candidate | None
    verdict: Verdict | None = None
    again: bool = False  #: it is measured, though the same code has a verdict
    profile: bool = True  #: as of the `Ask` or `Proposal` that it comes from

    @property
    def succeeded(self) -> bool:
        """Solved; where nothing is run, compiled: no verdict of such a run says more."""
        return self.solved or self.compiled


def rank(verdict: Verdict) -> tuple[float, float, float]:
    """Return a key, larger is better: correct before incorrect, then the speed-up, else how far it came.

    A speed-up that was measured beside other work comes after all others.

    Of kernels that were not timed, emulated or only compiled, the one with fewer findings of the compiler's figures.
    """
    if verdict.speedup is not None:
        return (1.5 if verdict.unsettled else 2.0, verdict.speedup.value, 0.0)
    if verdict.failure is None:
        return (1.0, -float(verdict.compiler_findings), 0.0)
    found = verdict.failure.mismatch
    right = 1.0 - found.wrong_elements / max(found.elements, 1) if found else 0.0
    return (0.0, float(verdict.failure.stage.place), right)


def best_of(samples: Sequence[Sample]) -> Sample:
    """Return the best judged sample; of equals the first."""
    judged = [sample for sample in samples if sample.verdict is not None]
    return max(judged, key=lambda sample: (rank(sample.verdict), -sample.key.sample))  # type: ignore[arg-type]


def ranked(samples: Iterable[Sample]) -> list[Sample]:
    """Sort judged samples by `rank`, the best first; equals stay in the order of their numbers."""
    judged = [sample for sample in samples if sample.verdict is not None]
    judged.sort(key=lambda sample: (sample.key.attempt, sample.key.sample))
    return sorted(judged, key=lambda sample: rank(sample.verdict), reverse=True)  # type: ignore[arg-type]


def replaces(new: Verdict, best: Verdict) -> bool:
    """Return whether the best verdict of a later attempt takes the place of the best so far.

    Of equals the first stays; of those that were not timed the last, which was written to be the better one.
    """
    if new.status in (Status.COMPILED, Status.EMULATED) and rank(new) == rank(best):
        return True
    return rank(new) > rank(best)


def better(sample: Sample, best: Sample | None) -> Sample:
    """Return the better of two judged samples; `best` where they are equals."""
    assert sample.verdict is not None
    if best is None or best.verdict is None or replaces(sample.verdict, best.verdict):
        return sample
    return best


def earlier_with_code(samples: Iterable[Sample], sample: Sample) -> SampleKey | None:
    """Return the first of `samples`, in their order, that held the same code in an earlier attempt than `sample`."""
    held = sample.candidate.sha256 if sample.candidate is not None else None
    earlier = (one for one in samples if one.key.attempt < sample.key.attempt)
    return next((one.key for one in earlier if one.candidate and one.candidate.sha256 == held), None)


def tried(sample: Sample) -> Tried:
    """Return a judged sample as the next prompt tells of it."""
    assert sample.verdict is not None
    return Tried(key=sample.key, candidate=sample.candidate, verdict=sample.verdict)
