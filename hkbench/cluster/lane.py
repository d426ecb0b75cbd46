"""One card as the controller sees it: its link, what it has to do, and how often it failed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from hkbench.cluster.messages import Entered, Judged, Ready, Work
from hkbench.records import BackendName, Problem, ProblemFacts

T = TypeVar("T")


class CardLost(Exception):
    """A card's process, its node, or the way to it is gone; the text completes "node-a, card 1: ..."."""


class NodeGone(CardLost):
    """The card's node is gone, so that no process can be started there."""


class CardLink(Protocol):
    """The way to a card. Every method may raise CardLost, and HkbenchError for what failed over there."""

    @property
    def node(self) -> str: ...

    @property
    def name(self) -> str:
        """The node's name and which of its cards this is; the same when a node comes back."""

    async def start(self) -> Ready:
        """Start the card's process, a new one each time. Raises NodeGone where there is none any more."""

    async def ping(self) -> float:
        """Return the node's time, in seconds since the epoch."""

    async def require(self, backend: BackendName) -> None: ...

    async def facts(self, problem: Problem, seconds: float | None) -> ProblemFacts: ...

    def judge(self, work: Work, code: bytes) -> AsyncGenerator[Entered | Judged, None]: ...

    async def stop(self) -> None:
        """End the card's process, whatever it is at."""


@dataclass
class Standing:
    """What is known of a card under its name, also when its node has gone and come back."""

    index: int  #: in the run
    failures: int = 0  #: since its last verdict
    out: str | None = None  #: why it is left out


class Lane:
    """A card that is there. `depth`: how much it is given at once, to be built while something is measured."""

    def __init__(self, link: CardLink, depth: int, standing: Standing) -> None:
        self.link = link
        self.depth = depth
        self.standing = standing
        self.ready: Ready | None = None
        self.busy = 0
        self.heard = -math.inf  #: when something last came from it, by the loop's clock
        self.skew = 0.0  #: seconds that the node's clock is ahead of this one's
        self._lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def index(self) -> int:
        return self.standing.index

    @property
    def is_free(self) -> bool:
        return self.ready is not None and self.busy < self.depth

    def open(self, ready: Ready) -> None:
        """Take work."""
        self.ready = ready
        self.heard = -math.inf
        self._lost = asyncio.get_running_loop().create_future()

    def hear(self) -> None:
        """Note that something came from the card."""
        self.heard = asyncio.get_running_loop().time()

    def lose(self, reason: str) -> None:
        """Have all work on it end with CardLost."""
        self.ready = None
        if not self._lost.done():
            self._lost.set_result(reason)

    async def lost(self, seconds: float) -> None:
        """Wait so long for the card to be lost, and raise CardLost if it is."""
        await asyncio.wait((self._lost,), timeout=seconds)
        if self._lost.done():
            raise CardLost(self._lost.result())

    async def carry(self, call: Callable[[Lane], Awaitable[T]]) -> T:
        """Do some work on the card.

        Raises:
            CardLost: the card was lost meanwhile; what the work comes to later counts for nothing.
        """
        lost = self._lost
        self.hear()
        work = asyncio.ensure_future(call(self))
        try:
            await asyncio.wait((work, lost), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise CardLost(lost.result())
            return work.result()
        except CardLost as error:
            if lost is self._lost:  # else another process has its place by now
                self.lose(str(error))
            raise
        finally:
            if not work.done():
                work.cancel()
