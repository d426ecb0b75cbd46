"""Tell a candidate's failure from what an emulated GPU lacks: PyTorch is a CPU's build, and ROCm its runtime alone."""

from __future__ import annotations

import re

from hkbench.records import Failure, FailureKind

#: How PyTorch says that it was built without CUDA; on a GPU it says none of this.
_CPU_BUILD = re.compile(
    r"torch\._C' has no attribute '_|cannot import name '\w+' from 'torch\._C'|dummy base class|without ATen_cuda"
    r"|without support for the specified device|(?:compiled without|not compiled with|requires) (?:CUDA|cuDNN)"
    r"|CUDA build\?|Storage device not recognized: cuda|from the '\w*CUDA' backend|No module named 'amdsmi'"
    r"|amdsmi does not seem to be installed"
)
#: What an extension finds in ROCm's libraries and in a PyTorch for ROCm, which loads them, and not here.
_SYMBOL = re.compile(
    r"undefined symbol: ((?:(?:hip[a-z]*|miopen|nccl)[A-Z]|roc[a-z]+_)\w+|_ZNK?(?:2at|3c10)(?:4cuda|3hip)\w+)"
)
_FRAME = re.compile(r'File "[^"\n]*", line (\d{1,9}), in .*\n(.*)')
_SHOWN = 100  #: characters of a line
_EXCEPTIONS = (FailureKind.LOAD_ERROR, FailureKind.RUNTIME_ERROR)


def lacking(failure: Failure, source: str) -> Failure:
    """Return the failure as `unsupported`, with the line of the source, where the emulated GPU lacks what it calls."""
    if failure.kind not in _EXCEPTIONS:
        return failure
    if symbol := _SYMBOL.search(failure.message):
        message = f"{symbol[1]} is not there on the emulated device: do without it, or judge the candidate on a GPU"
        return failure.model_copy(update={"kind": FailureKind.UNSUPPORTED, "message": message})
    if not _CPU_BUILD.search(failure.message):
        return failure
    line = _called(failure.detail or "", source)
    needed = f" that `{line[:_SHOWN]}` needs" if line else ""
    message = (
        f"something{needed} is not there on the emulated device: do without it, or judge the candidate on a GPU; "
        f"PyTorch says: {failure.message}"
    )
    return failure.model_copy(update={"kind": FailureKind.UNSUPPORTED, "message": message})


def _called(trace: str, source: str) -> str:
    """Return the last line of a traceback that stands in the source, by its number and text; empty: none does."""
    lines = dict(enumerate(map(str.strip, source.splitlines()), 1))
    frames = [(int(number), text.strip()) for number, text in _FRAME.findall(trace)]
    return next((text for number, text in reversed(frames) if lines.get(number) == text), "")
