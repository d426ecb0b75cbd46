"""Whether a GPU works without the device code of libraries: `python -m hkbench.runner.library_check DEVICE`.

The harness runs it where it has replaced libraries (engine/stripped.py), before any candidate. What is wrong is the
last line on standard error, and the exit code is 1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import torch


def main(device: str) -> None:
    """Copy and fill on the device, and see that everything else fails.

    Raises:
        RuntimeError: of the device, which does not even copy.
        SystemExit: something computes there.
    """
    filled = torch.empty(16, device=device).fill_(3.0)
    every = torch.empty(2, dtype=torch.int8, device=device).copy_(
        filled.int()[::8]
    )  # as protocol/device_stream.py does
    if filled.clone().half().tolist() != [3.0] * 16 or every.tolist() != [3, 3]:
        sys.exit("copies are wrong")
    if filled.is_cuda:
        torch.cuda._sleep(1000)
        torch.cuda.synchronize()
    for name, compute in _computing(filled):
        try:
            compute()
        except RuntimeError:
            continue
        sys.exit(f"{name} computes all the same")


def _computing(filled: torch.Tensor) -> Iterator[tuple[str, Callable[[], object]]]:
    square = filled.reshape(4, 4)
    yield "a sum", lambda: filled.sum().item()
    yield "a product of matrices", lambda: (square @ square).tolist()
    yield "a softmax", lambda: square.softmax(1).tolist()


if __name__ == "__main__":
    main(sys.argv[1])
