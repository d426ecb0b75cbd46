"""Whose device code a candidate can run on a GPU.

Whose kernels ran is told by the candidate's process, which can lie. In track `own` its runner therefore sees libraries
without device code (engine/stripped.py): there its own word is not needed. Who fails for want of them is judged once
more, with more in reach, and less is established of it.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

from hkbench.profile.ownership import BEYOND
from hkbench.records import Failure, FailureKind

#: What a process says that misses PyTorch's kernels, and what one says, or a text names, that calls a library. Who says
#: so for no reason gains nothing.
_PYTORCH = re.compile(r"no kernel image is available|device kernel image is invalid")
_LIBRARIES = re.compile(r"cu(?:blas|dnn|fft|sparse|solver|tensor)", re.IGNORECASE)


class Reach(StrEnum):
    """What device code a candidate's process can run beside its own."""

    OWN = "own"  #: PyTorch's that copies, fills, concatenates, counts or draws random numbers
    SIMPLE = "simple"  #: all of PyTorch's that works element by element or reduces
    ALL = "all"


def wider(reach: Reach, failure: Failure | None, code: Path) -> Reach | None:
    """Return with what reach a candidate, whose file is `code`, has to be judged once more, if it has to be."""
    if failure is None or reach is Reach.ALL:
        return None
    said = _said(failure)
    if _LIBRARIES.search(said) or _LIBRARIES.search(code.read_text(errors="replace")):
        return Reach.ALL
    if _PYTORCH.search(said):
        return Reach.SIMPLE if reach is Reach.OWN else Reach.ALL
    return None


def not_own_there(failure: Failure, reach: Reach) -> Failure:
    """Return a failure at a further shape as what it is: there the candidate wants what is kept from it."""
    if reach is Reach.ALL or not (_PYTORCH.search(_said(failure)) or _LIBRARIES.search(_said(failure))):
        return failure
    return failure.model_copy(update={"kind": FailureKind.NOT_OWN, "message": f"{missed(failure)}. {BEYOND}"})


def missed(failure: Failure | None) -> str:
    """Say that a candidate cannot do without the device code of others, by how it failed without."""
    said = "" if failure is None else f"; without it: {failure.kind}, {failure.message.splitlines()[0][:200]}"
    return f"it needs device code of PyTorch or of a library, beyond PyTorch's copies and fills{said}"


def _said(failure: Failure) -> str:
    return f"{failure.message}\n{failure.detail or ''}"
