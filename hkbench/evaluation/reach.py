"""Whose device code a candidate can run on a GPU.

Whose kernels ran is told by the candidate's process, which can lie. In track `own` its runner therefore sees libraries
without device code (engine/stripped.py): there its own word is not needed. Who fails for want of them is judged once
more, with more in reach, and less is established of it.
"""

from __future__ import annotations

import re
from pathlib import Path

from hkbench.evaluation.job import EvaluateJob
from hkbench.profile.ownership import BEYOND, NEEDS
from hkbench.records import Failure, FailureKind, Reach, Track, Work

#: What a process says that misses PyTorch's kernels, and what one says, or a text names, that calls a library. Who says
#: so for no reason gains nothing.
_PYTORCH = re.compile(
    r"no kernel image is available|device kernel image is invalid|invalid device function|NVRTC|HIPRTC|hiprtc"
)
_LIBRARIES = re.compile(
    r"(?:cu|roc|hip)(?:blas|dnn|fft|sparse|solver|tensor)|miopen|aotriton|_inductor|torch\.compile\b", re.IGNORECASE
)


def wider(reach: Reach, failure: Failure | None, code: Path) -> Reach | None:
    """Return with what reach a candidate, whose file is `code`, has to be judged once more, if it has to be."""
    if failure is None or reach is Reach.ALL:
        return None
    said = _said(failure)
    if failure.kind is FailureKind.CRASH:  # of a library that does nothing, what a function returns can be no address
        return Reach.ALL
    if _LIBRARIES.search(said) or _LIBRARIES.search(code.read_text(errors="replace")):
        return Reach.ALL
    if _PYTORCH.search(said):
        return Reach.SIMPLE if reach is Reach.OWN else Reach.ALL
    return None


def not_own_there(failure: Failure, reach: Reach) -> Failure:
    """Return a failure at a further shape as what it is: there the candidate wants what is kept from it."""
    if reach is Reach.ALL or not (_PYTORCH.search(_said(failure)) or _LIBRARIES.search(_said(failure))):
        return failure
    return failure.model_copy(
        update={"kind": FailureKind.NOT_OWN, "message": f"{NEEDS}; without it: {missed(failure)}. {BEYOND}"}
    )


def missed(failure: Failure) -> str:
    """Say in a line how a candidate failed."""
    first, *_ = failure.message.splitlines() or [""]
    return f"{failure.kind}, {first[:200]}"


def with_reach(work: Work | None, job: EvaluateJob) -> Work | None:
    """Add what device code was in reach of the process that told of the work.

    With nothing else in reach, what is kept from the trace is the candidate's own.
    """
    if job.settings.track is Track.ANY:
        return work
    needs = None if job.missed is None or job.all_because is not None else missed(job.missed)
    if work is None and needs is not None and job.reach is Reach.ALL:
        work = Work(own=0.0, pytorch=0.0, library=1.0, source="what it cannot do without")
    if work is None:
        return None
    changed = {"reach": job.reach, "missed": needs} | ({"unexplained": 0.0} if job.reach is Reach.OWN else {})
    return work.model_copy(update=changed)


def own_word(work: Work) -> str:
    """Say why the candidate's process alone tells whose kernels ran, where that is so for what it needs."""
    return f"it needs kernels of PyTorch that work element by element or reduce; without them: {work.missed}"


def _said(failure: Failure) -> str:
    return f"{failure.message}\n{failure.detail or ''}"
