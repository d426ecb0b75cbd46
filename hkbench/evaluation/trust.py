"""Put the witnesses of a correct candidate together: does its time hold, and did its own kernels do the work?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from hkbench.analysis import roofline
from hkbench.backends.language import (
    defined_kernels,
    language_of_kernels,
    language_of_launches,
    language_of_objects,
)
from hkbench.device_kinds import model_of
from hkbench.evaluation import clocks
from hkbench.evaluation.job import EvaluateJob
from hkbench.evaluation.measure import Measurement
from hkbench.evaluation.reach import own_word, with_reach
from hkbench.evaluation.refusal import NO_FLOOR, NO_WORK, refusal
from hkbench.evaluation.session import Session, draw_seed
from hkbench.evaluation.timing import Observations
from hkbench.profile import names, ownership
from hkbench.profile.copies import copied_kernels_apart
from hkbench.profile.kernel_owner import owner_of_kernel
from hkbench.profile.sampled_code import Place, files_of
from hkbench.protocol.messages import Object
from hkbench.records import (
    Clocks,
    Failure,
    Floor,
    Isolation,
    IsolationLevel,
    KernelLanguage,
    Ownership,
    Work,
)
from hkbench.stats import quantile

MAX_RESTLESS = 2  #: calls; the accounting of a thread that is just being stopped may come late
QUICK = 0.1  #: the quantile of a candidate's timed calls that is one of its quickest
_BROKEN_TRACE = "the kernel trace works for the baseline and fails for the candidate"


class CandidateContext:
    """What holds for every measurement of one candidate: looked for once, when it is first asked for."""

    def __init__(self, session: Session, job: EvaluateJob, source: str, folder: names.BuildFolder) -> None:
        self.session = session
        self.job = job
        self.source = source
        self._folder = folder

    @cached_property
    def built(self) -> names.Built:
        """What its build left, and which kernels of its text are installed ones (where kernels are seen by name)."""
        built = self._folder.read_apart()
        model = model_of(self.job.device)
        if model.on_host and model.emulates is None:
            return built
        copied = self._folder.copied(lambda: copied_kernels_apart(self.source, self.job.folder))
        return replace(built, foreign={**copied, **built.foreign})

    @cached_property
    def least(self) -> Floor | str:
        """The least time of a call, or why it is not known."""
        session, reference = self.session, self.session.reference
        try:
            inputs = reference.inputs(draw_seed())
            found = roofline.least_time(reference, inputs, reference.native(inputs), session.facts)
        except torch.OutOfMemoryError:  # copies of inputs and outputs are held for it
            return f"too little memory of {session.facts.name} is left to look for what has to be read"
        return f"the peak rates of {session.facts.name} are unknown" if found is None else found


@dataclass(frozen=True)
class TrustReport:
    """What the witnesses said, and why the candidate is refused, if it is."""

    clocks: Clocks
    floor: Floor | None
    work: Work | None
    language: KernelLanguage | None
    refusal: Failure | None
    ownership: Ownership
    not_checked: tuple[str, ...] = ()
    unseen: str | None = None  #: why the guard could not sample some process of the candidate


def compare_clocks(evidence: CandidateContext, measured: Measurement, seen: Observations) -> Clocks:
    """Compare the clocks and observers with the measurement; `reasons` says which of them contradict it.

    Beside other work a watched call may wait for a processor and a timed one not: there the two are not compared, and
    the verdict is unsettled.
    """
    session, job = evidence.session, evidence.job
    left, right = measured.samples
    beside = _beside_others(measured)
    trace = _trace(seen) | {"outputs": session.computes} | ({"seconds": None} if beside else {})
    agreed = clocks.compare(left, right, trace, model_of(job.device))
    further = [session.quiet.reason, _BROKEN_TRACE if seen.only_here else None]
    if session.side.ran_while_frozen > MAX_RESTLESS:
        further.append(f"processes of the candidate ran {session.side.ran_while_frozen} times while they were stopped")
    further += () if beside else clocks.sampled_reasons(seen.sampled_seconds, agreed.candidate)
    reasons = (*agreed.reasons, *(reason for reason in further if reason is not None))
    return agreed.model_copy(update={"reasons": reasons, "agree": not reasons})


def assess(evidence: CandidateContext, measured: Measurement, seen: Observations, agreed: Clocks) -> TrustReport:
    """Hold the measurement, of which the clocks say `agreed`, against the floor and the trace."""
    job = evidence.job
    right = measured.samples[1]
    least = evidence.least
    floor = None if isinstance(least, str) else least
    seconds = measured.candidate.median.value, measured.baseline.median.value
    files = _files(seen, evidence)
    work = _work(seen, evidence, seconds, quantile(right.seconds, QUICK), files)
    open_ends = []
    if isinstance(least, str):
        open_ends.append(f"{NO_FLOOR}{least}")
    if _beside_others(measured):
        open_ends.append("whether a watched call takes as long as a timed one: other work was on the processors")
    if len(right.seconds) < clocks.MIN_MEDIAN_SAMPLES:
        open_ends.append(f"small lies about the time: {len(right.seconds)} timed runs tell little of the clocks' noise")
    if work is None:
        open_ends.append(f"{NO_WORK}the trace and the samples say too little")
    elif seen.error is not None:
        whom = "nor can the baseline's" if seen.blind else "the baseline's can"
        open_ends.append(f"{NO_WORK}processes of the candidate cannot be sampled, {whom} ({seen.error})")
    elif model_of(job.device).on_host and ownership.ownership(work) is Ownership.NOT_ESTABLISHED:
        open_ends.append(f"{NO_WORK}too few samples show any work, and the dispatcher sees no library")
    refused = refusal(seconds[0], agreed, floor, work, job.settings.track)
    whose = ownership.ownership(work)
    if whose is Ownership.NOT_ESTABLISHED and work is not None and work.reach is not None:
        open_ends.append(f"{NO_WORK}its process alone tells: {job.all_because or own_word(work)}")
    return TrustReport(
        agreed, floor, work, _language(seen, evidence, files), refused, whose, tuple(open_ends), seen.error
    )


def _beside_others(measured: Measurement) -> bool:
    return measured.contention is not None and bool(measured.contention.reasons)


def name_kernels(
    evidence: CandidateContext, kernels: Mapping[str, int]
) -> tuple[KernelLanguage | None, tuple[str, ...]]:
    """Return what the kernels are written in that an emulated GPU executed, and those that are not the candidate's.

    `kernels`: name -> instructions.
    """
    if not kernels:
        return None, ()
    source, built, job = evidence.source, evidence.built, evidence.job
    owner_of = owner_of_kernel(defined_kernels(source, job.backend), built)
    foreign = tuple(name for name in kernels if owner_of(name) in ownership.FOREIGN)
    return language_of_launches(kernels, source, built, job.device, job.backend), foreign


def _work(
    seen: Observations,
    evidence: CandidateContext,
    seconds: tuple[float, float],
    quick: float,
    files: Mapping[Place, str],
) -> Work | None:
    trace, job, built = _trace(seen), evidence.job, evidence.built
    if not model_of(job.device).on_host:
        defined, slack = defined_kernels(evidence.source, job.backend), model_of(job.device).limits.queued_slack
        return with_reach(ownership.device_work(trace, defined, built, seconds, quick, slack), job)
    share = ownership.operator_share(trace)
    if share is None:
        return None
    if seen.blind:  # the dispatcher is the only witness
        return ownership.cpu_work({}, share, job.folder, built, {}, seconds)
    return ownership.cpu_work(_by_file(seen, files), share, job.folder, built, seen.ticks(files), seconds)


def _files(seen: Observations, evidence: CandidateContext) -> dict[Place, str]:
    """Return the file to which the code of each sampled place belongs (on a GPU nothing is sampled)."""
    paths = {place.path for place in seen.places}
    own = ownership.own_objects(paths, evidence.job.folder, evidence.built)
    return files_of(seen.places, own)


def _by_file(seen: Observations, files: Mapping[Place, str]) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for place, count in seen.places.items():
        found[files[place]] += count
    return dict(found)


def _language(seen: Observations, evidence: CandidateContext, files: Mapping[Place, str]) -> KernelLanguage | None:
    job = evidence.job
    if model_of(job.device).on_host:
        return language_of_objects(_by_file(seen, files), job.folder, evidence.source, evidence.built, job.backend)
    return language_of_kernels(_trace(seen), evidence.source, evidence.built, job.device, job.backend)


def _trace(seen: Observations) -> Object:
    """Return what the runner said of its traced call, with the time that it reported of it."""
    return {**seen.answer.trace, "seconds": seen.answer.seconds}


def seen_isolation(surveyed: Isolation, unseen: str | None) -> Isolation:
    """Lower the level of isolation where a candidate hid from the guard; `unseen`: why it could not be sampled."""
    if unseen is None:
        return surveyed
    level = IsolationLevel.PARTIAL if surveyed.level is IsolationLevel.FULL else surveyed.level
    reason = f"sampling: the guard could not see whose code ran ({unseen}); give it CAP_SYS_PTRACE"
    return surveyed.model_copy(update={"level": level, "missing": (*surveyed.missing, reason)})
