"""Elements of a call's outputs, read by the copy engine as soon as the runner's stream says that it is done.

Between that word and the evaluator's own kernels, which take the outputs, the device changes from the runner's context
to the evaluator's: 0.14 ms on an H200. No kernel of the runner's runs then, but a copy engine works on, so that copies
could be left for that time. The engine also works for the evaluator: a stream of nothing but copies is not held up by
the change of contexts. So a few elements are read at once, at equal distances from a place that is drawn for each call,
and have to be the same in the outputs that are taken afterwards. They are few because each takes the engine 0.06 us.

Where the outputs lie is known only then. The reads are queued ahead for the places where they lay in the last calls: an
allocator mostly gives them the same, or two by turns. If they lie elsewhere, the host queues other reads as soon as it
learns of it, some 20 us later.
"""

from __future__ import annotations

import ctypes
import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import byref, c_int, c_size_t, c_uint, c_void_p
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import torch

from hkbench.protocol import device_memory
from hkbench.protocol.gate import DONE, PLACE_SIZE, PLACES, StreamOperations
from hkbench.protocol.memory import DTYPES
from hkbench.protocol.places import Place

OUTPUTS = 8  #: of a call's outputs so many are drawn, by their sizes and with repetition
ELEMENTS = 32  #: that are read of each, by one copy
LATE_SHARE = 0.5  #: of calls whose outputs lie at new places, up to which nothing is said of it
LAYS = 4  #: so many places of the outputs are remembered of a runner's calls
LINES = 8  #: so many times, along a drawn dimension each, of an output with gaps in memory
MAX_ITEM = 16  #: bytes of an element
MAX_DISTANCE = 1 << 31  #: bytes, below which drivers copy elements at equal distances
SOON = 1e-3  #: seconds before the expected end of a call from which on the evaluator waits without sleeping
LATE = 5e-3  #: seconds after it until which it does

Find = Callable[[int, int], int | None]  #: where memory of the runner's lies here, by its address there and its bytes
Lay = list[list[int]]  #: where the outputs of a call lie in the runner: for each its address and its strides


class _Copy(ctypes.Structure):
    """CUDA_MEMCPY2D."""

    _fields_ = (
        ("from_x", c_size_t), ("from_y", c_size_t), ("from_kind", c_uint), ("from_host", c_void_p),
        ("from_device", c_void_p), ("from_array", c_void_p), ("from_pitch", c_size_t),
        ("to_x", c_size_t), ("to_y", c_size_t), ("to_kind", c_uint), ("to_host", c_void_p),
        ("to_device", c_void_p), ("to_array", c_void_p), ("to_pitch", c_size_t),
        ("width", c_size_t), ("height", c_size_t),
    )  # fmt: skip


_HOST, _DEVICE = 1, 2  #: of enum CUmemorytype
_DEVICE_TO_HOST = 2  #: of enum hipMemcpyKind


@dataclass(frozen=True)
class Comb:
    """Elements of an output that lie at equal distances."""

    first: int  #: number of elements from its beginning to the first one, as they lie
    distance: int  #: from one to the next
    elements: npt.NDArray[np.int64]  #: their numbers, in the order of their indices


@dataclass(frozen=True)
class Read:
    """Elements that were read, into a row of the values."""

    lay: Lay  #: of all outputs
    output: int  #: its number
    elements: npt.NDArray[np.int64]
    there: int  #: where they begin in the runner
    size: int  #: bytes from there to their end
    here: int  #: where that lay in this process then


class CopyStream:
    """A stream of copies from a GPU's memory to the host's. Every failure is a RuntimeError that names the function.

    Each evaluation makes one: PyTorch has 32 streams, which it hands out in turn, so that one that was kept would be
    another one's too in the end, and wait for itself.
    """

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)
        self._operations = StreamOperations()
        self._driver = device_memory.driver()

    @staticmethod
    def memory(*shape: int, dtype: torch.dtype) -> torch.Tensor:
        """Return memory of the host's to copy into, of zeros; a process has it once: a driver takes 5 ms to pin it."""
        return _pinned(shape, dtype).zero_()

    def wait(self, address: int, value: int) -> None:
        """Have it wait until the 32 bits at an address on the device are at least `value`."""
        self._operations.wait(self._stream.cuda_stream, address, value)

    def fetch(self, to: int, address: int, size: int, count: int = 1, distance: int | None = None) -> None:
        """Have it copy `count` times `size` bytes from addresses on the device, `distance` bytes from one another."""
        stream, distance = c_void_p(self._stream.cuda_stream), distance or size
        if torch.version.hip is not None:
            sizes = c_size_t(size), c_void_p(address), c_size_t(distance), c_size_t(size), c_size_t(count)
            self._driver.call("Memcpy2DAsync", c_void_p(to), *sizes, c_int(_DEVICE_TO_HOST), stream)
            return
        copy = _Copy(width=size, height=count, from_kind=_DEVICE, from_device=address, from_pitch=distance)
        copy.to_kind, copy.to_host, copy.to_pitch = _HOST, to, size
        self._driver.call("Memcpy2DAsync_v2", byref(copy), stream)

    def synchronize(self) -> None:
        """Wait until it has done all that it was given."""
        self._stream.synchronize()


@cache
def _pinned(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype).pin_memory()


class SpotCheck:
    """The elements that are read of the calls of one evaluation."""

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
        self._values = stream.memory(LAYS * OUTPUTS * LINES, ELEMENTS * MAX_ITEM, dtype=torch.uint8)
        self._word = self._done.numpy()
        self._wanted: list[int] = []  # outputs
        self._rows: list[Read] = []
        self._known: dict[int, list[Lay]] = {}  # of a runner's last calls, the latest at the end, by its page's address
        self._at: list[Lay] = []  # for which the rows were read
        self._calls: dict[int, list[bool]] = {}  # of each call that was looked at, whether that was foreseen, by page
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
        drawn = secrets.SystemRandom().choices(self._filled, self._sizes, k=OUTPUTS)
        self._wanted = [*dict.fromkeys(drawn)]
        self._waits = True
        self._stream.synchronize()
        self._word[0] = -1
        self._expected = time.monotonic() + seconds
        self._stream.wait(page + DONE, number)
        self._read(self._known.get(page, []))
        self._stream.fetch(self._told.data_ptr(), page + PLACES, self._told.nbytes)
        self._stream.fetch(self._done.data_ptr(), page + DONE, self._done.nbytes)  # it is seen last

    def look(self) -> float | None:
        """See that the elements are read if the call is done; else return in how many seconds to look again.

        None: there is nothing more to look for.
        """
        if not self._waits:
            return None
        if self._word[0] >= self._number:
            self._waits = False
            if not self._is_read(told := self._told.tolist()):
                self._read([told])
            return None
        left = self._expected - time.monotonic()
        self._waits = left >= -LATE
        return max(0.0, left - SOON) if self._waits else None

    def changed(self, outputs: Mapping[str, torch.Tensor]) -> str | None:
        """Return which output was not finished when it was first looked at; `outputs`: as they were taken then.

        The streams of the call have ended.
        """
        self._waits = False
        if not outputs or not self._wanted:
            return None
        self._stream.synchronize()
        told = self._told.tolist()
        known = self._known.get(self._page, [])
        self._calls.setdefault(self._page, []).append(told in known)
        self._known[self._page] = [*(lay for lay in known if lay != told), told][-LAYS:]
        if not self._is_read(told):
            return None
        for row, read in enumerate(self._rows):
            if read.lay != told:
                continue
            path, count = self._paths[read.output], len(read.elements)
            later = outputs[path].view(-1)[torch.from_numpy(read.elements).to(outputs[path].device)]
            taken = later.view(torch.uint8).view(count, -1).cpu()
            seen = self._values[row, : taken.numel()].view(count, -1)
            if not torch.equal(taken, seen):
                element = read.elements[int((taken != seen).any(1).nonzero()[0])]
                return f"{path}{[*map(int, np.unravel_index(element, self._shapes[read.output]))]}"
        return None

    def late(self, page: int) -> str | None:
        """Return what was not looked at in time in most calls of a runner's, by the address of its page."""
        calls = self._calls.get(page, [])
        late = calls.count(False)
        if late <= LATE_SHARE * len(calls):
            return None
        where = f"the outputs lay where they had not lain in the calls before in {late} of {len(calls)} calls"
        return f"that no copy of some 20 us was left when the stream of a call was done: {where}"

    def end(self) -> None:
        """Wait until nothing of it is queued any more."""
        self._waits, self._wanted = False, []
        self._stream.synchronize()

    def _read(self, lays: Sequence[Lay]) -> None:
        """Queue the reads of outputs that may lie as one of `lays` has it."""
        self._at, self._rows = [*lays], []
        for lay in lays:
            for output in self._wanted:
                address, *strides = lay[output]
                for comb in drawn_combs(self._shapes[output], strides[: len(self._shapes[output])]):
                    self._fetch(lay, output, comb, address)

    def _fetch(self, lay: Lay, output: int, comb: Comb, address: int) -> None:
        """Queue a read of elements of an output that lies at an address of the runner's."""
        item, elements = self._items[output], comb.elements
        distance = item * comb.distance
        if distance >= MAX_DISTANCE:
            elements, distance = elements[:1], item
        count = len(elements)
        there, size = address + item * comb.first, distance * (count - 1) + item
        here = self._find(there, size)
        if here is not None:  # else `take` says that it does not lie in memory that was shown
            self._stream.fetch(self._values[len(self._rows)].data_ptr(), here, item, count, distance)
            self._rows.append(Read(lay, output, elements, there, size, here))

    def _is_read(self, told: Lay) -> bool:
        """Return whether outputs that lie so were read, and lie still in the memory that was read."""
        rows = (read for read in self._rows if read.lay == told)
        return told in self._at and all(self._find(read.there, read.size) == read.here for read in rows)


def drawn_combs(shape: Sequence[int], strides: Sequence[int]) -> Iterator[Comb]:
    """Draw what to read of an output that lies with these strides.

    Where there are no gaps between its elements, however its dimensions are ordered, that is spread over all of it.
    """
    order = sorted((dim for dim, size in enumerate(shape) if size > 1), key=lambda dim: -strides[dim])
    sizes = [shape[dim] for dim in order]
    if all(strides[dim] == math.prod(sizes[place + 1 :]) for place, dim in enumerate(order)):
        lie = _spread(math.prod(sizes))
        index = [np.zeros(len(lie), np.int64) for _ in shape]
        for dim, places in zip(order, np.unravel_index(lie, sizes) if sizes else (), strict=True):
            index[dim] = places.astype(np.int64)
        yield Comb(lie.start, lie.step, _numbers(index, shape))
        return
    moving = [dim for dim in order if strides[dim] > 0]
    for _ in range(LINES):
        lines = [np.array([secrets.randbelow(size)]) for size in shape]
        distance = 1
        if moving:
            dim = secrets.choice(moving)
            along = _spread(shape[dim])
            lines[dim], distance = np.array(along), strides[dim] * along.step
        first = sum(int(line[0]) * stride for line, stride in zip(lines, strides, strict=True))
        yield Comb(first, distance, _numbers([*np.broadcast_arrays(*lines)], shape))


def _spread(count: int) -> range:
    """Return numbers below a count at equal distances, from a drawn one on."""
    step = -(-count // ELEMENTS)
    return range(secrets.randbelow(step), count, step)


def _numbers(index: Sequence[npt.NDArray[np.int64]], shape: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the numbers of elements in the order of their indices; a tensor without dimensions has one."""
    return np.ravel_multi_index(tuple(index), tuple(shape)).astype(np.int64) if shape else np.zeros(1, np.int64)
