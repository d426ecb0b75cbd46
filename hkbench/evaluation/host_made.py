"""What the candidate's process made for its kernels to read, told apart from the work that kernels do.

Kernels may read what PyTorch's operators laid out anew, cast or padded. They may not read the answer. Two signs tell:

* Half of the outputs' bytes stand in what they read of the host's, and in no other call: a kernel that copies.
* Of what they read of the host's and of what the host wrote to the outputs itself, an eighth as much as the outputs
  depends on so many elements of the inputs each that nearly all of it changes where one element in 32 does. What is
  moved or cast changes with its own element only. An answer that is told within its tolerance takes half of its bytes.

What operators make of results of kernels is not meant: results are replaced by one and the same number while it is
looked at, so that what comes of them is the same in all calls.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from hkbench.protocol.memory import mapped
from hkbench.protocol.wire import leaves

Table = npt.NDArray[np.uint64]  #: rows (number of a chunk of 16 bytes, bytes of it): see emulator/trace.py
SPARSE = 1 / 32  #: of the elements of the inputs, that are changed
#: Of chunks of 16 bytes that were moved or cast, how many change with them: at most so many (bytes of 8 bits: 40 %).
MOVED = 0.4
COMPUTED = 1 / 8  #: of the outputs' bytes, from which on what the host computed is an answer, or a part of one


def table(data: bytes) -> Table:
    """Return the rows of a table of the device's, each number once, in ascending order."""
    rows = np.frombuffer(data, np.uint64).reshape(-1, 2)
    if _ascends(rows[:, 0]):
        return rows
    _, first = np.unique(rows[:, 0], return_index=True)
    return np.asarray(rows[first])


def size(rows: Table) -> int:
    """Return how many bytes they are."""
    return int(rows[:, 1].sum())


def without(rows: Table, *others: Table) -> Table:
    """Return the rows whose numbers are in none of the others."""
    for other in others:
        rows = rows[~_among(rows, other)]
    return rows


def within(rows: Table, other: Table) -> Table:
    """Return the rows whose numbers are in another table."""
    return rows[_among(rows, other)]


def computed(first: Table, near: Table, far: Table) -> float:
    """Return how many bytes the host computed from many elements each.

    The tables are of calls with some inputs, with those of which few elements changed, and with other ones.
    """
    all_of_it, changed = size(without(far, first)), size(without(near, first))
    return (min(changed, all_of_it) - MOVED * all_of_it) / (1 - MOVED)


def sparsely_changed(inputs: Sequence[object], others: Sequence[object], seed: int) -> list[object]:
    """Return the inputs with few of their elements taken from `others`."""
    draw = torch.Generator().manual_seed(seed)
    more = iter([leaf for _, leaf in leaves(list(others), "") if isinstance(leaf, torch.Tensor)])

    def change(tensor: torch.Tensor) -> torch.Tensor:
        chosen = torch.rand(tensor.shape, generator=draw) < SPARSE
        return torch.where(chosen, next(more), tensor)

    return [mapped(one, change) for one in inputs]


def _ascends(numbers: npt.NDArray[np.uint64]) -> bool:
    return bool((numbers[1:] > numbers[:-1]).all())


def _among(rows: Table, other: Table) -> npt.NDArray[np.bool_]:
    """Return which rows' numbers are in another table; `np.isin` takes ten times as long where both ascend."""
    known = np.ascontiguousarray(other[:, 0])
    if not known.size:
        return np.zeros(len(rows), np.bool_)
    if not _ascends(known):
        known.sort()
    numbers = np.ascontiguousarray(rows[:, 0])
    at = np.minimum(np.searchsorted(known, numbers), known.size - 1)
    return np.asarray(known[at] == numbers)
