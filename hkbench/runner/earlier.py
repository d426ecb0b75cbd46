"""The result of the call before."""

from __future__ import annotations

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from hkbench.protocol import memory

MAX_HELD = 1 << 30  #: bytes of a result that is held beside the next one


class Earlier:
    """The result of the call before, which a caller may still hold when the next one comes.

    It is held, as a caller would, so that memory which is handed out anew meets it. Of a large result only its storages
    are remembered, and whether they are still alive: a second block of its size may not fit.
    """

    def __init__(self, leaves: list[torch.Tensor], strict: bool) -> None:
        """Hold the answer; `strict`: whatever its size."""
        self._held: list[torch.Tensor] = []
        self._alive: list[tuple[StorageWeakRef, torch.device, tuple[int, int]]] = []
        if strict or sum(leaf.nbytes for leaf in leaves) <= MAX_HELD:
            self._held = leaves
            return
        self._alive = [(StorageWeakRef(x.untyped_storage()), x.device, memory.stretch(x)) for x in leaves if x.numel()]

    def overlaps(self, leaf: torch.Tensor) -> bool:
        """Return whether a tensor lies in its memory."""
        if any(_taken_back(tensor) or memory.overlap(leaf, tensor) for tensor in self._held):
            return True
        if leaf.layout != torch.strided or not leaf.numel():
            return False
        begin, end = memory.stretch(leaf)
        return any(
            not storage.expired() and leaf.device == device and begin < last and first < end
            for storage, device, (first, last) in self._alive
        )


def _taken_back(tensor: torch.Tensor) -> bool:
    """Return whether whoever made a result has used its memory again, as a graph of `torch.compile`'s does.

    PyTorch's CUDA graphs then raise wherever the result is looked at.
    """
    try:
        tensor.data_ptr()
    except RuntimeError:
        return True
    return False
