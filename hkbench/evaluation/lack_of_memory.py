"""Find out whose memory it was when the evaluator or the baseline had too little of the device's."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from hkbench.device_kinds import model_of
from hkbench.devices.probe import torch_device
from hkbench.errors import DeviceMemoryLacking, DeviceUnavailable, ProblemError, WorkerLost
from hkbench.evaluation.failures import OUT_OF_MEMORY, failed
from hkbench.evaluation.job import EvaluateJob
from hkbench.records import DeviceFacts, Failure, FailureKind, Stage

#: What is raised where the evaluator or the baseline has no memory, among others.
PERHAPS_OF_MEMORY = (torch.OutOfMemoryError, DeviceUnavailable, ProblemError, WorkerLost)

MIN_SHARE = 1 / 4  #: of the device's memory, that came back when the candidate's processes ended: then it was theirs
SECONDS = 5.0  #: for a driver to give back what an ended process had


def memory_failure(
    error: Exception, job: EvaluateJob, facts: DeviceFacts | None, stage: Stage, end: Callable[[], object]
) -> Failure:
    """Return the failure of a candidate that has so much of a GPU's memory that others fail; `end` ends its processes.

    Raises:
        Exception: `error` where it is of something else.
        DeviceMemoryLacking: where the memory was not the candidate's, or may have been that of evaluations beside it.
    """
    lacking = isinstance(error, torch.OutOfMemoryError) or OUT_OF_MEMORY.search(str(error)) is not None
    if facts is None or model_of(facts.kind).on_host or not lacking:
        raise error
    unavailable = DeviceMemoryLacking(f"too little of the device's memory was left: {error}")
    if job.settings.evaluations_per_gpu > 1 and not job.alone:
        raise unavailable from error
    device = torch_device(facts)
    free, memory = torch.cuda.mem_get_info(device)
    end()
    deadline = time.monotonic() + SECONDS
    while (back := torch.cuda.mem_get_info(device)[0] - free) < MIN_SHARE * memory:
        if time.monotonic() > deadline:
            raise unavailable from error
        time.sleep(0.02)
    message = (
        f"the candidate's processes had {back / 2**30:.1f} GiB of the device's {memory / 2**30:.1f} GiB of memory, "
        "which left too little for the reference and the comparison"
    )
    return failed(stage, FailureKind.OUT_OF_MEMORY, message).failure
