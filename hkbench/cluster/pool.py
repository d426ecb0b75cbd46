"""Which card gets what: work goes to the least busy one, and to another one when a card is lost.

A card that is lost is started again; one that fails `MAX_FAILURES` times without a verdict in between is left out.
What fails by the fault of a machine is tried on `MAX_TRIES` cards; what was under way on `MAX_LOSSES` cards as each was
lost is not tried again, since it may be what they were lost by. Whoever waits for a verdict gets one.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from hkbench.cluster.lane import CardLink, CardLost, Lane, NodeGone, Standing
from hkbench.errors import DeviceUnavailable, HkbenchError, InternalError, Unavailable, WorkerLost

T = TypeVar("T")

MAX_FAILURES = 3
MAX_TRIES = 3
MAX_LOSSES = 6


@dataclass(frozen=True)
class Tempo:
    """Seconds. A card that hangs is given up after `ping` and `answer`, which is when its work moves."""

    ping: float = 5.0  #: without news, until a card is asked whether it is there
    answer: float = 15.0  #: for it to say so
    silent: float = 3600.0  #: for a card with work to come to another stage or a verdict, by the evaluation's limits
    start: float = 600.0  #: for a card's process to open its device
    again: float = 1.0  #: until a card is started again
    grace: float = 120.0  #: for a card to come (back) while there is none at all


class Pool:
    """The cards of a cluster. `failed` is told of each that is lost or left out, and why.

    `check` is given a card that has opened, and may raise HkbenchError to have it left out.
    """

    def __init__(
        self, tempo: Tempo, failed: Callable[[Lane, str], None], check: Callable[[Lane], None] = lambda _lane: None
    ) -> None:
        self._tempo = tempo
        self._failed = failed
        self._check = check
        self._standings: dict[str, Standing] = {}
        self._lanes: dict[Lane, asyncio.Task[None]] = {}
        self._waiting: deque[tuple[asyncio.Future[Lane], Collection[str]]] = deque()
        self._hopeless: asyncio.TimerHandle | None = None
        self._stopping: set[asyncio.Task[None]] = set()

    @property
    def ready(self) -> list[Lane]:
        """The cards that take work, by index."""
        return sorted((lane for lane in self._lanes if lane.ready is not None), key=lambda lane: lane.index)

    @property
    def left_out(self) -> dict[str, str]:
        """Why cards get no work any more, by name."""
        return {name: standing.out for name, standing in self._standings.items() if standing.out is not None}

    def add(self, link: CardLink, depth: int) -> None:
        """Start a card, unless one of its name was left out."""
        standing = self._standings.setdefault(link.name, Standing(len(self._standings)))
        if standing.out is None:
            lane = Lane(link, depth, standing)
            self._lanes[lane] = asyncio.create_task(self._tend(lane))
            self._look()

    async def opened(self) -> None:
        """Wait until each card takes work or was left out."""
        while any(lane.ready is None for lane in self._lanes):
            await asyncio.sleep(0.05)

    def lose_node(self, node: str, reason: str) -> None:
        """Take back the work of all cards of a node that is gone."""
        for lane in [lane for lane in self._lanes if lane.link.node == node]:
            was_ready = lane.ready is not None
            self._drop(lane, reason)
            if was_ready:
                self._count(lane, reason)

    def leave_out(self, lane: Lane, reason: str) -> None:
        """Give a card no more work."""
        lane.standing.out = reason
        self._drop(lane, reason)
        self._failed(lane, reason)

    async def run(self, call: Callable[[Lane], Awaitable[T]]) -> T:
        """Do some work on a card; on another one where the machine fails.

        Raises:
            HkbenchError: it failed by something else, or on too many cards, or there are none.
        """
        tried: list[str] = []
        losses = 0
        while True:
            lane = await self._lend(tried)
            failure: HkbenchError
            try:
                return await self._carried(lane, call)
            except CardLost as error:
                losses += 1
                failure = WorkerLost(f"{lane.link.name}: {error}")
            except (Unavailable, InternalError) as error:
                failure = type(error)(f"{lane.link.name}: {error}")
            tried.append(lane.link.name)
            if losses == MAX_LOSSES or len(tried) - losses == MAX_TRIES:
                raise failure

    async def run_on(self, lane: Lane, call: Callable[[Lane], Awaitable[T]]) -> T:
        """Do some work on this very card, beside what it has. Raises CardLost, and HkbenchError."""
        lane.busy += 1
        return await self._carried(lane, call)

    async def _carried(self, lane: Lane, call: Callable[[Lane], Awaitable[T]]) -> T:
        """Do some work on a card that is lent, and take it back."""
        try:
            found = await lane.carry(call)
        except (Unavailable, InternalError) as error:
            self._count(lane, str(error))
            raise
        finally:
            lane.busy -= 1
            self._serve()
        lane.standing.failures = 0
        return found

    async def close(self) -> None:
        """Stop all cards."""
        if self._hopeless is not None:
            self._hopeless.cancel()
        lanes, self._lanes = self._lanes, {}
        for task in lanes.values():
            task.cancel()
        await asyncio.gather(*lanes.values(), return_exceptions=True)
        await asyncio.gather(*map(self._stop, lanes), *self._stopping, return_exceptions=True)

    async def _tend(self, lane: Lane) -> None:
        """Start a card, watch it, and start it again when it is lost."""
        while lane in self._lanes:
            try:
                async with asyncio.timeout(self._tempo.start):
                    ready = await lane.link.start()
                lane.open(ready)
                self._check(lane)
                self._look()
                self._serve()
                await self._watch(lane)
            except NodeGone as error:
                self._drop(lane, str(error))
            except (CardLost, InternalError) as error:
                self._lost(lane, str(error))
            except TimeoutError:
                self._lost(lane, f"its device was not open within {self._tempo.start:g} s")
            except HkbenchError as error:  # which another start would meet again
                self.leave_out(lane, str(error))
            with suppress(CardLost):
                await lane.link.stop()
            await asyncio.sleep(self._tempo.again)

    async def _watch(self, lane: Lane) -> None:
        """Raise CardLost when a card is lost, does not answer, or comes to nothing more."""
        while True:
            quiet = asyncio.get_running_loop().time() - lane.heard
            if quiet >= self._tempo.ping:
                await self._ask(lane)
                if lane.busy and self._tempo.silent < quiet < math.inf:
                    raise CardLost(f"it came to no further stage and no verdict within {self._tempo.silent:g} s")
            await lane.lost(self._tempo.ping)

    async def _ask(self, lane: Lane) -> None:
        asked = time.time()
        try:
            async with asyncio.timeout(self._tempo.answer):
                there = await lane.link.ping()
        except TimeoutError:
            raise CardLost(f"it did not answer within {self._tempo.answer:g} s") from None
        lane.skew = there - (asked + time.time()) / 2

    def _lost(self, lane: Lane, reason: str) -> None:
        lane.lose(reason)
        self._count(lane, reason)

    def _count(self, lane: Lane, reason: str) -> None:
        """Count a failure of a card, and leave it out when there were too many."""
        standing = lane.standing
        if standing.out is not None:
            return
        standing.failures += 1
        if standing.failures >= MAX_FAILURES:
            self.leave_out(
                lane, f"it failed {MAX_FAILURES} times without a verdict in between, the last time: {reason}"
            )
        else:
            self._failed(lane, reason)

    def _drop(self, lane: Lane, reason: str) -> None:
        """Let a card go, with its process."""
        lane.lose(reason)
        task = self._lanes.pop(lane, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            stopping = asyncio.create_task(self._stop(lane))
            self._stopping.add(stopping)
            stopping.add_done_callback(self._stopping.discard)
        self._look()

    async def _stop(self, lane: Lane) -> None:
        with suppress(CardLost):
            await lane.link.stop()

    async def _lend(self, avoid: Collection[str]) -> Lane:
        """Wait for a card that is free and lend it; one in `avoid` only where no other one is free."""
        lane = None if self._waiting else self._least_busy(avoid)
        if lane is not None:
            lane.busy += 1
            return lane
        turn: asyncio.Future[Lane] = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, avoid))
        self._serve()
        self._look()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:  # lent at the same moment
                turn.result().busy -= 1
                self._serve()
            raise

    def _least_busy(self, avoid: Collection[str]) -> Lane | None:
        free = (lane for lane in self._lanes if lane.is_free)
        return min(free, key=lambda lane: (lane.link.name in avoid, lane.busy / lane.depth, lane.index), default=None)

    def _serve(self) -> None:
        """Lend free cards to those who wait, first come, first served."""
        while self._waiting:
            turn, avoid = self._waiting[0]
            lane = None if turn.done() else self._least_busy(avoid)
            if lane is None and not turn.done():
                return
            self._waiting.popleft()
            if lane is not None:
                lane.busy += 1
                turn.set_result(lane)

    def _look(self) -> None:
        """Begin to count the time without any card, or end that."""
        if any(lane.standing.out is None for lane in self._lanes):
            if self._hopeless is not None:
                self._hopeless.cancel()
                self._hopeless = None
        elif self._hopeless is None:
            self._hopeless = asyncio.get_running_loop().call_later(self._tempo.grace, self._give_up)

    def _give_up(self) -> None:
        self._hopeless = None
        said = "; ".join(f"{name}: {why}" for name, why in self.left_out.items()) or "its nodes are gone"
        for turn, _ in self._waiting:
            if not turn.done():
                turn.set_exception(DeviceUnavailable(f"the cluster has no card any more ({said})"))
        self._waiting.clear()
