"""Who may build and who may measure."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Devices:
    """The devices of a run; each is lent to one measurement at a time."""

    def __init__(self, indexes: list[int]) -> None:
        self._free: asyncio.Queue[int] = asyncio.Queue()
        for index in indexes:
            self._free.put_nowait(index)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[int]:
        """Wait for a free device and lend it."""
        index = await self._free.get()
        try:
            yield index
        finally:
            self._free.put_nowait(index)


class BuildSlots:
    """Up to `count` builds at a time. On a CPU device a measurement needs the cores, so it excludes builds.

    First come, first served: a measurement that waits lets no further build begin, and ends the wait as soon as the
    builds under way are done.
    """

    def __init__(self, count: int, exclusive_measurement: bool) -> None:
        self._count = count
        self._exclusive = exclusive_measurement
        self._building = 0
        self._measuring = False
        self._waiting: deque[tuple[bool, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def build(self) -> AsyncIterator[None]:
        await self._enter(measure=False)
        try:
            yield
        finally:
            self._building -= 1
            self._wake()

    @asynccontextmanager
    async def measure(self) -> AsyncIterator[None]:
        if not self._exclusive:
            yield
            return
        await self._enter(measure=True)
        try:
            yield
        finally:
            self._measuring = False
            self._wake()

    async def _enter(self, measure: bool) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((measure, turn))
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
