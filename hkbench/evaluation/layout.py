"""What it costs to bring outputs of another layout into the reference's, which is added to the candidate's time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

import torch

from hkbench.analysis.reference import Leaves
from hkbench.evaluation.form import Leaf
from hkbench.protocol.memory import DTYPES
from hkbench.protocol.places import Place

COPIES = 9


class LayoutCost:
    """Seconds that outputs take longer to be copied out, for strides that are not the reference's.

    The copy is made after the end of `forward`, where the runner's clock does not run. It is charged to the candidate
    by what copies of the evaluator's own take: who claims other strides to have time for work there pays for that time.
    """

    def __init__(self, places: dict[str, Place], form: Leaves, device: torch.device) -> None:
        """Take `places` of the outputs in the outbox, and `form`, the reference's outputs as it returned them."""
        self._places, self._device = places, device
        self._usual = {path: list(leaf.stride()) for path, leaf in form.items() if isinstance(leaf, torch.Tensor)}
        self._known: dict[tuple[str, tuple[int, ...]], float] = {}

    def seconds(self, leaves: Sequence[Leaf]) -> float:
        """Return the seconds of one call, by its outputs."""
        return sum(self._more(leaf.path, leaf.strides) for leaf in leaves if leaf.strides)

    def _more(self, path: str, strides: list[int]) -> float:
        if strides == self._usual[path] or strides == self._places[path].strides:
            return 0.0
        return max(0.0, self._copy(path, strides) - self._copy(path, self._usual[path]))

    def _copy(self, path: str, strides: list[int]) -> float:
        """Return the median of some tries: on a machine with other work a copy's threads often wait for one another."""
        key = path, tuple(strides)
        if key not in self._known:
            place = self._places[path]
            target = torch.empty(place.shape, dtype=DTYPES[place.dtype], device=self._device)
            source = torch.empty_strided(place.shape, strides, dtype=target.dtype, device=self._device).zero_()
            self._known[key] = median(_seconds(target, source) for _ in range(COPIES))
        return self._known[key]


def _seconds(target: torch.Tensor, source: torch.Tensor) -> float:
    start = time.perf_counter()
    target.copy_(source)
    if target.is_cuda:
        torch.cuda.synchronize(target.device)
    return time.perf_counter() - start
