"""Who may build and who may measure."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum

from hkbench.device_kinds import DeviceModel
from hkbench.records import EvaluationSettings

LOADED_AHEAD = 2  #: candidates that have a device or wait for it, where each has it alone


class HostShare(StrEnum):
    """Name what a measurement takes of the host's cores."""

    NONE = "none"  #: a GPU works, and builds go on beside it
    ONE_SLOT = "one slot"  #: it executes on a core and times nothing: as a build does
    ALL = "all"  #: it is timed on the cores, and excludes builds and other measurements


def host_share(model: DeviceModel) -> HostShare:
    """Return what a measurement on a device of a kind takes of the host's cores."""
    if model.emulates is not None:
        return HostShare.ONE_SLOT
    return HostShare.ALL if model.on_host else HostShare.NONE


def side_by_side(model: DeviceModel, settings: EvaluationSettings) -> int:
    """Return how many evaluations use a device, of which one is timed at a time; a CPU is not shared."""
    return 1 if model.on_host else settings.evaluations_per_gpu


def loaded_ahead(model: DeviceModel, settings: EvaluationSettings) -> int:
    """Return how many candidates of a device may have it or wait for it, beyond the builds under way."""
    return LOADED_AHEAD + side_by_side(model, settings) - 1


@dataclass(frozen=True)
class DeviceSlot:
    """One of the evaluations that a device is lent to at a time."""

    device: int
    number: int = 0


class Devices:
    """The devices of a run; each is lent to up to `each` evaluations at a time."""

    def __init__(self, indexes: Sequence[int], each: int = 1) -> None:
        """Take the devices' numbers; one that comes twice is lent to twice as many."""
        self._free = {index: list(range(each * count)) for index, count in Counter(indexes).items()}
        self._places = asyncio.Semaphore(len(indexes) * each)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[DeviceSlot]:
        """Wait for a slot of a device, of the one that has most, and lend it."""
        async with self._places:
            device = max(self._free, key=lambda index: len(self._free[index]))
            number = self._free[device].pop(0)
            try:
                yield DeviceSlot(device, number)
            finally:
                insort(self._free[device], number)


class BuildSlots:
    """Up to `count` builds at a time, and the measurements beside them that `measurement` admits.

    First come, first served: a measurement that needs all cores and waits lets no further build begin, and ends the
    wait as soon as the builds under way are done.
    """

    def __init__(self, count: int, measurement: HostShare) -> None:
        self._count = count
        self._measurement = measurement
        self._building = 0
        self._measuring = False
        self._waiting: deque[tuple[bool, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def build(self, *, first: bool = False) -> AsyncIterator[None]:
        """Wait for a build slot and hold it; `first`: before all who wait, because theirs gain by this one."""
        await self._enter(measure=False, first=first)
        try:
            yield
        finally:
            self._building -= 1
            self._wake()

    @asynccontextmanager
    async def measure(self) -> AsyncIterator[None]:
        if self._measurement is HostShare.NONE:
            yield
            return
        if self._measurement is HostShare.ONE_SLOT:
            async with self.build():
                yield
            return
        await self._enter(measure=True)
        try:
            yield
        finally:
            self._measuring = False
            self._wake()

    async def _enter(self, measure: bool, first: bool = False) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if first else self._waiting.append)((measure, turn))
        self._wake()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # admitted and cancelled at the same moment
                if measure:
                    self._measuring = False
                else:
                    self._building -= 1
            self._wake()
            raise

    def _wake(self) -> None:
        while self._waiting:
            measure, turn = self._waiting[0]
            if turn.cancelled():
                self._waiting.popleft()
            elif measure and not self._building and not self._measuring:
                self._waiting.popleft()
                self._measuring = True
                turn.set_result(None)
            elif not measure and not self._measuring and self._building < self._count:
                self._waiting.popleft()
                self._building += 1
                turn.set_result(None)
            else:
                return
