"""Share a GPU among several evaluations: while one is timed, no other has work on the device.

Each evaluation has a process of its own. What they agree on are locks of files (flock): those of the parts of the
device's memory, of which an evaluation holds as many as it needs from its beginning to its end, and one for the device,
which it holds whenever it has work there, beside others or alone. A process that ends gives its locks back, however it
ends.
"""

from __future__ import annotations

import fcntl
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path

import torch

from hkbench.protocol.wire import leaves

#: How many times the memory of eager's forward pass an evaluation takes: that of the evaluator with regions for both
#: sides and a reference of twice the bytes, and that of two runners.
TIMES_FORWARD = 10
PARTS = 8  #: of a device's memory; as many evaluations may use it side by side
POLL_SECONDS = 0.01  #: between two looks at parts that others hold: flock waits for one file, not for any of several
MANY_BYTES = 1 << 28  #: of values that a processor draws in some tenths of a second


class SharedLock:
    """A lock between processes, which many hold at once or one alone; whoever waits to be alone lets nobody overtake.

    Its holder may fork: what it gives back, its children do not hold.
    """

    def __init__(self, path: Path) -> None:
        self._door, self._room = (
            os.open(path.with_suffix(suffix), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            for suffix in (".door", ".room")
        )

    def take(self, alone: bool) -> None:
        """Wait until nobody else holds it, or, unless `alone`, until nobody holds it alone."""
        fcntl.flock(self._door, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        finally:
            fcntl.flock(self._door, fcntl.LOCK_UN)

    def leave(self) -> None:
        """Give it back. Does nothing where it is not held."""
        fcntl.flock(self._room, fcntl.LOCK_UN)


class Parts:
    """Equal parts of something, locked between processes; whoever waits for some lets nobody overtake."""

    def __init__(self, path: Path) -> None:
        self._door, *self._parts = (
            os.open(path.with_suffix(f".{name}"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            for name in ("door", *range(PARTS))
        )

    def take(self, count: int) -> None:
        """Wait until `count` parts are nobody else's. Takes none beside those that it holds."""
        fcntl.flock(self._door, fcntl.LOCK_EX)
        try:
            held: list[int] = []
            while len(held) < count:
                for part in self._parts:
                    if part not in held and len(held) < count and _is_free(part):
                        held.append(part)
                if len(held) < count:
                    time.sleep(POLL_SECONDS)
        finally:
            fcntl.flock(self._door, fcntl.LOCK_UN)

    def leave(self) -> None:
        """Give all of them back. Does nothing where none is held."""
        for part in self._parts:
            fcntl.flock(part, fcntl.LOCK_UN)


def _is_free(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class DeviceShare:
    """One process's part in a device that others use too; without a folder nobody else does, and nothing waits."""

    def __init__(self, device: torch.device | None = None, folder: Path | None = None) -> None:
        """Take the `folder` that the processes of a device share; the locks lie there."""
        self._gpu = device if device is not None and device.type == "cuda" else None
        self._locks = None if folder is None else (Parts(folder / "memory"), SharedLock(folder / "device"))
        self._is_alone = False
        self._parts = 0  #: of the memory, that it holds
        self.waited = 0.0  #: seconds for others, in the present evaluation
        self.on_waited: Callable[[float], None] = _ignore  #: told of each wait

    @contextmanager
    def evaluation(self, at_once: int = PARTS, alone: bool = False) -> Iterator[None]:
        """Use the device as one of up to `at_once` evaluations, or `alone`."""
        self.waited = 0.0
        if self._locks is None:
            yield
            return
        memory, device = self._locks
        try:
            self._enter(PARTS if alone else PARTS // at_once)
            yield
        finally:
            device.leave()
            memory.leave()
            self._is_alone = False

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Have the device while no other evaluation has work there, to be timed.

        Who fails meanwhile stays alone until the evaluation ends: what it has left on the device has ended then.
        """
        if self._locks is None or self._is_alone:
            yield
            return
        self._move(alone=True)
        yield
        self._move(alone=False)

    def pause(self) -> None:
        """Let another evaluation be timed that waits for it. What this one queued on the device is done before."""
        if self._locks is not None and not self._is_alone:
            self._move(alone=False)

    @contextmanager
    def unused(self, drawn: Mapping[str, torch.Tensor] | None = None) -> Iterator[None]:
        """Work on the host, while others may be timed; where it is to draw values like `drawn`, if these are many."""
        brief = drawn is not None and sum(value.nbytes for value in drawn.values()) < MANY_BYTES
        if self._locks is None or self._is_alone or brief:
            yield
            return
        self._synchronize()
        try:
            with self._away(self._locks[1]):
                yield
        finally:
            if self._gpu is not None:
                torch.cuda.reset_peak_memory_stats(self._gpu)

    def away(self) -> AbstractContextManager[None] | None:
        """Return a context in which others may be timed while what is queued on the device waits for the host.

        None where this evaluation is alone.
        """
        return None if self._locks is None or self._is_alone else self._away(self._locks[1])

    @contextmanager
    def _away(self, device: SharedLock) -> Iterator[None]:
        device.leave()
        try:
            yield
        finally:
            self._wait(partial(device.take, alone=False))

    def need(self, values: object, memory: int | None) -> None:
        """Wait until others have ended, where an evaluation of this size takes more than its part of the `memory`.

        The size is that of tensors, `values`, or the most that this process had at a time since it last worked on the
        host alone. No other evaluation begins before this one has what it needs; it is alone if that is all.
        """
        if self._locks is None or self._is_alone or memory is None:
            return
        size = sum(leaf.nbytes for _, leaf in leaves(values, "") if isinstance(leaf, torch.Tensor))
        if self._gpu is not None:
            size = max(size, torch.cuda.max_memory_allocated(self._gpu))
        parts = min(PARTS, math.ceil(size * TIMES_FORWARD / (memory / PARTS)))
        if parts <= self._parts:
            return
        self._synchronize()
        self._locks[1].leave()  # before it waits: another one may have to be timed before it ends
        self._locks[0].leave()
        self._enter(parts)

    def forget(self) -> None:
        """Forget who is told of waits, with all that it refers to; this object outlives the evaluation."""
        self.on_waited = _ignore

    def _enter(self, parts: int) -> None:
        """Take so many parts of the memory, and the device: all parts are for one that is alone."""
        assert self._locks is not None
        memory, device = self._locks
        self._parts, self._is_alone = parts, parts == PARTS
        self._wait(partial(memory.take, parts))
        self._wait(partial(device.take, self._is_alone))

    def _move(self, alone: bool) -> None:
        assert self._locks is not None
        self._synchronize()
        self._locks[1].leave()
        self._wait(partial(self._locks[1].take, alone))
        self._is_alone = alone

    def _wait(self, take: Callable[[], None]) -> None:
        began = time.monotonic()
        take()
        seconds = time.monotonic() - began
        self.waited += seconds
        self.on_waited(seconds)

    def _synchronize(self) -> None:
        if self._gpu is not None:
            with suppress(torch.AcceleratorError):  # whoever uses the device next is told
                torch.cuda.synchronize(self._gpu)


def _ignore(_seconds: float) -> None:
    pass
