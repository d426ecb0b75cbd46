"""Whether a run is to end before its plan does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Self, TypeVar

from hkbench.errors import RunStopped

T = TypeVar("T")
Reason = Callable[[], RunStopped]


class Stop:
    """One for a run. Whoever begins something asks it first; what is under way is finished, unless it is abandoned."""

    def __init__(self) -> None:
        self.calls = 0  #: model calls under way
        self.abandoned = False  #: work that costs machine time only is not finished either
        self.refused = False  #: whether something was not begun or not finished for it; else the run came to its end
        self._reason: Reason | None = None
        self._told = asyncio.Event()
        self._work: set[asyncio.Task[Any]] = set()

    @property
    def told(self) -> bool:
        return self._reason is not None

    def reason(self) -> RunStopped:
        """Why, as it stands now: what is under way may still spend something."""
        assert self._reason is not None
        return self._reason()

    def refuse(self) -> RunStopped:
        """Notes that something was left for it; what to raise."""
        self.refused = True
        return self.reason()

    def end(self, reason: Reason) -> None:
        """Nothing new is begun from now on. The first reason stays."""
        self._reason = self._reason or reason
        self._told.set()

    def abandon(self, reason: Reason) -> None:
        """Nothing new is begun, and work under `unless_abandoned` is cancelled; model calls go on, being paid for."""
        if not self.abandoned:
            self.abandoned = True
            self._reason = reason
            self._told.set()
            for task in self._work:
                task.cancel()

    def check(self) -> None:
        """Raises the reason (RunStopped), if there is one."""
        if self._reason is not None:
            raise self.refuse()

    async def wait(self, seconds: float) -> None:
        """As asyncio.sleep. Raises RunStopped as soon as there is a reason."""
        self.check()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._told.wait()
        self.check()

    async def unless_abandoned(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`. Raises RunStopped where the run was abandoned before it came."""
        if self.abandoned:
            work.close()
            raise self.refuse()
        task = asyncio.ensure_future(work)
        self._work.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            here = asyncio.current_task()
            if self.abandoned and here is not None and not here.cancelling():
                raise self.refuse() from None
            raise
        finally:
            self._work.discard(task)


class Turn:
    """The permit of one model call: its first try is told of, and counted as under way until the end of `with`."""

    def __init__(self, stop: Stop, begun: Callable[[], None]) -> None:
        self._stop, self._tell = stop, begun
        self._begun = False
        self.wait = stop.wait

    def __enter__(self) -> Self:
        return self

    def begin(self) -> None:
        self._stop.check()
        if not self._begun:
            self._begun = True
            self._stop.calls += 1
            self._tell()

    def __exit__(self, *_: object) -> None:
        self._stop.calls -= self._begun
