"""Evaluate a candidate, and once more where what it was given decided the verdict.

In track `own` it has no device code of libraries in reach at first, and more of it where it misses some
(evaluation/reach.py). Beside others it may lack memory of the device, which it then has to itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from hkbench.engine.completion import EvaluationResult
from hkbench.errors import DeviceMemoryLacking
from hkbench.evaluation.job import EvaluateJob
from hkbench.evaluation.reach import wider
from hkbench.records import FailureKind, Reach, Verdict

Once = Callable[[EvaluateJob], Awaitable[EvaluationResult]]
WithReach = Callable[[EvaluateJob, Reach], Awaitable[EvaluateJob]]


async def evaluate_until_settled(
    job: EvaluateJob, code: Path, once: Once, with_reach: WithReach, beside: bool
) -> EvaluationResult:
    """Evaluate by `once` until what the candidate has in reach, and whether it is alone, does not matter.

    `beside`: others may use its device meanwhile. Raises what `once` raises.
    """
    job = await with_reach(job, Reach.OWN)
    found = await _with_memory(job, once, beside)
    while found.verdict and (more := wider(job.reach, found.verdict.failure, code)) is not None:
        job = await with_reach(job.model_copy(update={"missed": found.verdict.failure}), more)
        found = await _with_memory(job, once, beside)
    return found


async def _with_memory(job: EvaluateJob, once: Once, beside: bool) -> EvaluationResult:
    """Evaluate a candidate, once more with the device to itself where it may have lacked memory beside others."""
    try:
        found = await once(job)
    except DeviceMemoryLacking:
        if not beside:
            raise
    else:
        if not beside or not _lacked_memory(found.verdict):
            return found
    return await once(job.model_copy(update={"alone": True}))


def _lacked_memory(verdict: Verdict | None) -> bool:
    """Return whether a candidate failed for want of memory, at its problem's shape or at another one."""
    if verdict is None:
        return False
    further = () if verdict.shapes is None else verdict.shapes.failed
    failures = verdict.failure, *(one.failure for one in further)
    return any(failure is not None and failure.kind is FailureKind.OUT_OF_MEMORY for failure in failures)
