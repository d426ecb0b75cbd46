"""The evaluator's clock on a GPU: inputs are put in place, and outputs taken, by the evaluator's own stream.

Of one call: the runner's stream waits at its gate (protocol/gate.py) while `forward` is queued. The evaluator's stream
then stamps the device's clock, writes the inputs, evicts the caches, opens the gate, waits until the runner's stream
says that it is done, stamps the clock again and at once copies the outputs. Kernels of two processes share a GPU in
turn, so a stamp of the evaluator's is made when nothing else runs; work that was left for later is not in the outputs
then. A copy engine works beside both: the outputs are copied in an order that is drawn, and some elements are read
before it (evaluation/spot_check.py), so that no part of them is safely last. All else is queued before any of it
begins, so that an evaluator which has to wait for a processor meanwhile adds no time.

What a call costs by itself (messages of the two streams, a change of contexts twice, inputs, eviction) is that of null
calls of the baseline's runner, without a forward pass, and is taken off (evaluation/measure.py).
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from hkbench.evaluation.arena import SharedBuffer, is_address
from hkbench.evaluation.device_code import DeviceCode
from hkbench.evaluation.spot_check import CopyStream, SpotCheck
from hkbench.protocol import device_memory, wire
from hkbench.protocol.constants import HOLD_SECONDS
from hkbench.protocol.device_stream import Flusher
from hkbench.protocol.gate import DONE, GO, MAX_DIMS, MAX_OUTPUTS, PLACE_SIZE, PLACES, SIZE, StreamOperations
from hkbench.protocol.memory import DTYPES
from hkbench.protocol.places import Place

MAX_SEGMENTS = 1024  #: that one runner shows within one call, with those that it has shown before
DONE_SECONDS = 5.0  #: for the evaluator's stream to end after the runner has said that it is done
STAMPS = 3  #: before the inputs are written, as the gate opens, and when the runner's stream is done


class NotTaken(Exception):
    """The runner said that it was done, and its device did not, or its outputs lie in no memory that it showed."""


class Segments:
    """Memory of a runner's that the evaluator has mapped: where its outputs lie.

    The table that the device reads may be in use while the runner shows or gives up memory. So within a call rows are
    only added, and what the runner gives up has no bytes from then on but stays mapped until `tidy`.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._mapped: dict[int, tuple[int, torch.Tensor]] = {}  # row and memory, by the address in the runner
        self._left: list[torch.Tensor] = []
        self._stream = torch.cuda.Stream(device)
        self._fixed: tuple[int, torch.Tensor] | None = None
        # Pinned now: who allocates such memory while a stream of his waits for the runner may wait for ever.
        self._host = torch.zeros(1 + MAX_SEGMENTS, 3, dtype=torch.int64).pin_memory()
        self.table = torch.zeros(1 + MAX_SEGMENTS, 3, dtype=torch.int64, device=device)
        self._rows = 0

    def fix(self, address: int, region: torch.Tensor) -> None:
        """Set the outbox, which is not unmapped here, and its address in the runner."""
        self._fixed = address, region
        self.tidy()

    def changed(self, address: int, size: int, descriptor: int | None) -> None:
        """Map a new segment, or forget one (no descriptor).

        Raises:
            RuntimeError, ValueError: it cannot be mapped, or there are too many.
        """
        if descriptor is None:
            if address in self._mapped:
                row, region = self._mapped.pop(address)
                self._left.append(region)
                self._write(row, 0, 0, 0)
        else:
            if self._rows == MAX_SEGMENTS or not is_address(address) or address in self._mapped:
                os.close(descriptor)
                raise ValueError(f"{self._rows} segments of memory are known, and another one is at {address:#x}")
            region = device_memory.open_shared(size, descriptor, self._device)
            self._rows += 1
            self._mapped[address] = self._rows, region
            self._write(self._rows, address, region.nbytes, region.data_ptr())

    def find(self, address: int, size: int) -> int | None:
        """Return where memory of the runner's lies here; None where it has not shown that."""
        fixed = [] if self._fixed is None else [self._fixed]
        for begin, region in (*fixed, *((begin, region) for begin, (_, region) in self._mapped.items())):
            if begin <= address and address - begin <= region.nbytes - size:
                return int(region.data_ptr()) + address - begin
        return None

    def tidy(self) -> None:
        """Unmap what the runner gave up, and begin the table anew; no stream may look at it."""
        for region in self._left:
            device_memory.release(region)
        self._left.clear()
        kept = [(address, region) for address, (_, region) in self._mapped.items()]
        if self._rows != len(kept) + (self._fixed is not None):
            self._rows = 0
            for address, region in kept:
                self._rows += 1
                self._mapped[address] = self._rows, region
                self._write(self._rows, address, region.nbytes, region.data_ptr())
            if self._fixed is not None:
                self._rows += 1
                address, region = self._fixed
                self._write(self._rows, address, region.nbytes, region.data_ptr())

    def release(self) -> None:
        self._left += [region for _, region in self._mapped.values()]
        self._mapped.clear()
        self._fixed = None
        self.tidy()

    def _write(self, row: int, address: int, size: int, here: int) -> None:
        """Write a row: its bytes last, and then how many rows there are, as the device reads them first."""
        self._host[row] = torch.tensor([address, size, here])
        self._host[0, 0] = self._rows
        with torch.cuda.stream(self._stream):  # the stream of the calls may be waiting for this runner
            for part in ((row, 0), (row, 2), (row, 1), (0, 0)):
                self.table[part].copy_(self._host[part], non_blocking=True)
        self._stream.synchronize()


class Lane:
    """One runner's gate and segments."""

    def __init__(self, device: torch.device) -> None:
        self.page = SharedBuffer.on_device(SIZE, device)
        self.page.region.zero_()
        self.segments = Segments(device)
        self.number = 0
        self.seconds = 0.0  #: of the last call whose outputs were taken

    def release(self) -> None:
        self.segments.release()
        self.page.release()


class Stopwatch:
    """Time calls of the two runners of one evaluation.

    Raises:
        RuntimeError: this device, its driver or its compiler lacks what that needs; the message says what.
    """

    def __init__(self, device: torch.device, code: DeviceCode, flush_bytes: int, places: dict[str, Place]) -> None:
        if not hasattr(torch.cuda, "use_mem_pool"):
            raise RuntimeError(f"torch {torch.__version__} has no memory pools (2.6 has)")
        if len(places) > MAX_OUTPUTS:
            raise RuntimeError(f"{len(places)} outputs are more than the {MAX_OUTPUTS} that a call can hand over")
        shapes = [place.shape for place in places.values()]
        if any(len(shape) > MAX_DIMS for shape in shapes):
            raise RuntimeError(f"an output has more than {MAX_DIMS} dimensions")
        self.device, self.code, self.places = device, code, places
        self.operations = StreamOperations()
        self.stream = torch.cuda.Stream(device)
        self.aside = torch.cuda.Stream(device)
        self.stamps = torch.zeros(STAMPS + 1, dtype=torch.int64, device=device)  # the last one counts what is missing
        padded = [shape + [1] * (MAX_DIMS - len(shape)) for shape in shapes]
        self.shapes = torch.tensor(padded, dtype=torch.int64, device=device)
        self.flush = Flusher(device, flush_bytes, holds=False)
        self.spots = SpotCheck(places, CopyStream(device))
        self.candidate, self.baseline = Lane(device), Lane(device)
        self._start = SharedBuffer.on_device(SIZE, device)
        self._start.region.zero_()
        self._started = 0
        self._try()

    def _try(self) -> None:
        """Have the device do once what it does in every call, before a stream depends on it."""
        stream, page = self.stream.cuda_stream, self.candidate.page.region.data_ptr()
        torch.cuda.synchronize(self.device)
        try:
            self.operations.write(stream, page + GO, 0)
            self.operations.write_long(stream, page + PLACES, 0)
            self.operations.wait(stream, page + GO, 0)
            self.code.stamp(stream, self.stamps.data_ptr())
            self.stream.synchronize()
        except RuntimeError:
            self.release()
            raise

    @contextmanager
    def queued(self, lane: Lane) -> Iterator[None]:
        """Hold the evaluator's stream until all that is queued on it here has been queued.

        The first call of a lane is not held: it may load kernels, which can wait for the streams of the whole context.
        """
        flag = self._start.region.data_ptr()
        self._started += 1
        if lane.number > 1:
            self.operations.wait(self.stream.cuda_stream, flag, self._started)
        try:
            yield
        finally:
            self.operations.write(self.aside.cuda_stream, flag, self._started)

    def call(self, lane: Lane, reveal: Callable[[], None], takes: bool) -> GatedCall:
        """Begin the next call of a lane; the evaluator takes its outputs where it `takes` them.

        `reveal` queues the writing of its inputs on the current stream.
        """
        lane.number += 1
        return GatedCall(self, lane, reveal, takes)

    def begin(self, reveal: Callable[[], None]) -> None:
        """Queue on the current stream, the evaluator's, what comes before a gate is opened."""
        stream, stamps = self.stream.cuda_stream, self.stamps.data_ptr()
        self.code.stamp(stream, stamps)
        reveal()
        self.flush()
        self.code.stamp(stream, stamps + 8)

    def lead(self, lane: Lane, reveal: Callable[[], None]) -> float:
        """Return the seconds from the beginning of a call until its gate would be opened; its runner is not called."""
        torch.cuda.current_stream(self.device).synchronize()
        with torch.cuda.stream(self.stream), self.queued(lane):
            self.begin(reveal)
        self.stream.synchronize()
        begin, opened = self.stamps[:2].tolist()
        return float((opened - begin) * self.code.tick_seconds)

    def release(self) -> None:
        """Give back the device's memory. Raises RuntimeError where its driver refuses."""
        for lane in (self.candidate, self.baseline):
            lane.release()
        self._start.release()


class GatedCall:
    """One call: `release` once the runner has begun, then `finish` when it has answered, or `abandon`."""

    hold_seconds = HOLD_SECONDS
    lost: str | None = None  # `finish` raises
    changed: str | None = None  #: the output that was not finished when the runner's stream said so

    def __init__(self, watch: Stopwatch, lane: Lane, reveal: Callable[[], None], takes: bool) -> None:
        self._watch, self._lane, self._reveal = watch, lane, reveal
        self.number = lane.number
        self._released = False
        self._page = lane.page.region.data_ptr()
        self.outputs: dict[str, torch.Tensor] = {}
        for path, place in watch.places.items() if takes else ():
            self.outputs[path] = torch.empty(place.shape, dtype=DTYPES[place.dtype], device=watch.device)
        torch.cuda.current_stream(watch.device).synchronize()

    def release(self) -> None:
        """Queue the evaluator's part of the call."""
        watch, segments = self._watch, self._lane.segments
        stream = watch.stream.cuda_stream
        stamps = watch.stamps.data_ptr()
        self._released = True
        with torch.cuda.stream(watch.stream), watch.queued(self._lane):
            watch.stamps[STAMPS].zero_()
            watch.begin(self._reveal)
            watch.operations.write(stream, self._page + GO, self.number)
            watch.operations.wait(stream, self._page + DONE, self.number)
            watch.code.stamp(stream, stamps + 16)
            if self.outputs:
                watch.spots.begin(self.number, self._page, self._lane.seconds, segments.find)
            taken = [(index, value) for index, value in enumerate(self.outputs.values()) if value.nbytes]
            for index, value in secrets.SystemRandom().sample(taken, len(taken)):
                place, shape = self._page + PLACES + PLACE_SIZE * index, watch.shapes[index].data_ptr()
                watch.code.take(stream, place, segments.table.data_ptr(), shape, value, stamps + 8 * STAMPS)

    def look(self) -> float | None:
        """Look whether the call is done, for its spots; return in how many seconds to look again, None for never."""
        return self._watch.spots.look() if self._released else None

    def end(self, told: wire.Message) -> None:
        """Raise NotTaken: the device says when such a call has ended."""
        raise NotTaken(f"the runner said {told.get('event')!r} within a call on the device")

    def finish(self) -> float:
        """Take the outputs; return the seconds from before the inputs were written until the runner's stream was done.

        Raises:
            NotTaken
        """
        deadline = time.monotonic() + DONE_SECONDS
        while self._released and not self._watch.stream.query():
            if time.monotonic() > deadline:
                self.abandon()
                raise NotTaken("the runner answered before the stream of its call was done")
            if self.look() is None:
                time.sleep(2e-5)
        self._lane.segments.tidy()
        if not self._released:
            raise NotTaken("the runner answered a call that it had not begun")
        begin, _opened, end, missing = self._watch.stamps.tolist()
        if missing:
            raise NotTaken("an output lies in memory that the runner did not show")
        self.changed = self._watch.spots.changed(self.outputs)
        seconds = float((end - begin) * self._watch.code.tick_seconds)
        if self.outputs:
            self._lane.seconds = seconds
        return seconds

    def abandon(self) -> None:
        """Let both streams go on after a call that failed; its outputs are worth nothing."""
        aside, operations = self._watch.aside.cuda_stream, self._watch.operations
        for flag in (GO, DONE):
            operations.write(aside, self._page + flag, self.number)
        self._watch.aside.synchronize()
        self._watch.stream.synchronize()
        self._watch.spots.end()
        self._lane.segments.tidy()
