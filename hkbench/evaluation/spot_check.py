"""Elements of a call's outputs, read by the copy engine as soon as the runner's stream says that it is done.

Between that word and the evaluator's own kernels, which take the outputs, the device changes from the runner's context
to the evaluator's: 0.14 ms on an H200. No kernel of the runner's runs then, but a copy engine works on, so that copies
could be left for that time. The engine also works for the evaluator: a stream of nothing but copies is not held up by
the change of contexts. So some elements, drawn for each call, are read at once, and have to be the same in the outputs
that are taken afterwards.

Where the outputs lie is known only then. The reads are queued ahead for where they lay in the call before, as they
mostly do; if they lie elsewhere, the host queues others as soon as it learns of it, some 20 us later.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Mapping
from ctypes import c_size_t, c_void_p
from dataclasses import dataclass

import numpy as np
import torch

from hkbench.protocol import device_memory
from hkbench.protocol.gate import DONE, PLACE_SIZE, PLACES, StreamOperations
from hkbench.protocol.memory import DTYPES
from hkbench.protocol.places import Place

SPOTS = 8  #: elements that are read of a call's outputs
MAX_ITEM = 16  #: bytes of an element
SOON = 1e-3  #: seconds before the expected end of a call from which on the evaluator waits without sleeping
LATE = 5e-3  #: seconds after it until which it does

Find = Callable[[int, int], int | None]  #: where memory of the runner's lies here, by its address there and its bytes


@dataclass(frozen=True)
class Spot:
    """One element of an output."""

    output: int  #: its number
    element: int  #: in the order of its indices
    index: tuple[int, ...]


class CopyStream:
    """A stream of copies from a GPU's memory to the host's. Every failure is a RuntimeError that names the function."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)
        self._operations = StreamOperations()
        self._driver = device_memory.driver()
        self._name = "MemcpyDtoHAsync_v2" if torch.version.hip is None else "MemcpyDtoHAsync"

    @staticmethod
    def memory(*shape: int, dtype: torch.dtype) -> torch.Tensor:
        """Return memory of the host's to copy into, of zeros."""
        return torch.zeros(shape, dtype=dtype).pin_memory()

    def wait(self, address: int, value: int) -> None:
        """Have it wait until the 32 bits at an address on the device are at least `value`."""
        self._operations.wait(self._stream.cuda_stream, address, value)

    def fetch(self, to: int, address: int, size: int) -> None:
        """Have it copy `size` bytes from an address on the device."""
        self._driver.call(
            self._name, c_void_p(to), c_void_p(address), c_size_t(size), c_void_p(self._stream.cuda_stream)
        )

    def synchronize(self) -> None:
        """Wait until it has done all that it was given."""
        self._stream.synchronize()


class SpotCheck:
    """The spots of the calls of one evaluation."""

    def __init__(self, places: Mapping[str, Place], stream: CopyStream) -> None:
        self._paths = list(places)
        self._shapes = [place.shape for place in places.values()]
        self._items = [DTYPES[place.dtype].itemsize for place in places.values()]
        counts = [math.prod(shape) for shape in self._shapes]
        self._filled = [output for output, count in enumerate(counts) if count]
        self._sizes = [counts[output] * self._items[output] for output in self._filled]
        self._stream = stream
        self._done = stream.memory(1, dtype=torch.int32)
        self._told = stream.memory(len(places), PLACE_SIZE // 8, dtype=torch.int64)
        self._values = stream.memory(SPOTS, MAX_ITEM, dtype=torch.uint8)
        self._word = self._done.numpy()
        self._spots: list[Spot] = []
        self._rows: dict[int, Spot] = {}  # those that were read, by their row of the values
        self._lay: dict[int, list[list[int]]] = {}  # where the outputs lay in the last call, by the address of its page
        self._at: list[list[int]] | None = None  # where they were taken to lie when the rows were read
        self._waits = False
        self._number = self._page = 0
        self._expected = 0.0
        self._find: Find = lambda _address, _size: None

    def begin(self, number: int, page: int, seconds: float, find: Find) -> None:
        """Queue the reads of a call, which is taken to last `seconds`, and what tells that it is done.

        `page`: the address of its gate's.
        """
        if not self._filled:
            return
        self._number, self._page, self._find = number, page, find
        drawn = secrets.SystemRandom().choices(self._filled, self._sizes, k=SPOTS)
        self._spots = [self._drawn(output) for output in drawn]
        self._waits = True
        self._stream.synchronize()
        self._word[0] = -1
        self._expected = time.monotonic() + seconds
        self._stream.wait(page + DONE, number)
        self._read(self._lay.get(page))
        self._stream.fetch(self._told.data_ptr(), page + PLACES, self._told.nbytes)
        self._stream.fetch(self._done.data_ptr(), page + DONE, self._done.nbytes)  # it is seen last

    def look(self) -> float | None:
        """See that the spots are read if the call is done; else return in how many seconds to look again.

        None: there is nothing more to look for.
        """
        if not self._waits:
            return None
        if self._word[0] >= self._number:
            self._waits = False
            if (told := self._told.tolist()) != self._at:
                self._read(told)
            return None
        left = self._expected - time.monotonic()
        self._waits = left >= -LATE
        return max(0.0, left - SOON) if self._waits else None

    def changed(self, outputs: Mapping[str, torch.Tensor]) -> str | None:
        """Return which output was not finished when it was first looked at; `outputs`: as they were taken then.

        The streams of the call have ended.
        """
        self._waits = False
        if not outputs or not self._spots:
            return None
        self._stream.synchronize()
        self._lay[self._page] = self._told.tolist()
        if self._lay[self._page] != self._at:
            return None
        for output, path in enumerate(self._paths):
            rows = [row for row, spot in self._rows.items() if spot.output == output]
            if rows:
                chosen = torch.tensor([self._rows[row].element for row in rows], device=outputs[path].device)
                later = outputs[path].view(-1)[chosen].view(torch.uint8).view(len(rows), -1).cpu()
                for row, item in zip(rows, later, strict=True):
                    if not torch.equal(item, self._values[row, : item.numel()]):
                        return f"{path}{list(self._rows[row].index)}"
        return None

    def end(self) -> None:
        """Wait until nothing of it is queued any more."""
        self._waits, self._spots = False, []
        self._stream.synchronize()

    def _read(self, places: list[list[int]] | None) -> None:
        """Queue the reads of the spots of outputs that lie at `places`: for each its address and its strides."""
        self._at, self._rows = places, {}
        for row, spot in enumerate(self._spots if places is not None else ()):
            assert places is not None
            item = self._items[spot.output]
            address, *strides = places[spot.output]
            there = address + item * sum(i * stride for i, stride in zip(spot.index, strides, strict=False))
            here = self._find(there, item)
            if here is not None:  # else `take` says that it does not lie in memory that was shown
                self._stream.fetch(self._values.data_ptr() + MAX_ITEM * row, here, item)
                self._rows[row] = spot

    def _drawn(self, output: int) -> Spot:
        shape = self._shapes[output]
        element = secrets.randbelow(math.prod(shape))
        return Spot(output, element, tuple(map(int, np.unravel_index(element, shape))))
