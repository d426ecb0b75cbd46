"""Whether a run is to end before its plan does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from hkbench.errors import RunStopped
from hkbench.llm.client import Retry
from hkbench.records import CallKey, CallRetried

T = TypeVar("T")
Reason = Callable[[], RunStopped]

#: Seconds after the time limit of a run in which measurements and model calls under way may come to their end. The
#: processes are ended and the report is written after them, within a minute of the limit together.
GRACE = 40.0


@dataclass(eq=False)
class Work:
    """Something under way that can be left to the resume."""

    until: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    measuring: bool = False  #: a device is lent to it
    call: bool = False  #: of a model: paid for


class Stop:
    """One for a run, which ends it in one of three ways; the first one that is told says why.

    `end`: nothing new is asked of a model; what is under way or answered is finished. `expire`, for a time limit: only
    measurements and model calls under way are finished, within `GRACE` seconds. `abandon`, for Ctrl-C: only model calls
    are, however long they take.
    """

    def __init__(self, grace: float = GRACE) -> None:
        self.calls = 0  #: model calls under way
        self.abandoned = False
        self.expired = False
        self.on_told: Callable[[RunStopped], None] = lambda _: None  #: called once, when the first reason is told
        self.refused = False  #: whether something was not begun or not finished for it; else the run came to its end
        self._grace = grace
        self._reason: Reason | None = None
        self._told = asyncio.Event()
        self._work: set[Work] = set()
        self._cut = False  #: the grace is over: nothing is waited for

    @property
    def told(self) -> bool:
        return self._reason is not None

    @property
    def leaves_evaluations(self) -> bool:
        """Whether what costs machine time only is left to the resume, too."""
        return self.abandoned or self.expired

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
        self._tell(self._reason or reason)

    def abandon(self, reason: Reason) -> None:
        """Nothing new is begun, and all evaluations are cancelled; model calls are waited for, being paid for.

        To be called within a running event loop, as `expire` is.
        """
        if not self.abandoned:
            self.abandoned = True
            self._tell(reason)
            self._cancel(lambda work: not work.call)

    def expire(self, reason: Reason) -> None:
        """Nothing new is begun; evaluations without a device are cancelled at once, the rest after the grace."""
        if not self.expired:
            self.expired = True
            self.end(reason)
            self._cancel(lambda work: not (work.call or work.measuring))
            asyncio.get_running_loop().call_later(self._grace, self._cut_off)

    def _tell(self, reason: Reason) -> None:
        first, self._reason = self._reason is None, reason
        self._told.set()
        if first:
            self.on_told(reason())

    def _cut_off(self) -> None:
        self._cut = True
        self._cancel(lambda _: True)

    def _cancel(self, which: Callable[[Work], bool]) -> None:
        now = asyncio.get_running_loop().time()
        for work in self._work:
            if which(work) and not work.until.expired():
                work.until.reschedule(now)

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

    async def unless_left(self, evaluation: Coroutine[Any, Any, T], work: Work | None = None) -> T:
        """The result of `evaluation`; whoever runs it says in `work` when a device is lent to it.

        Raises RunStopped where the run left it to the resume before the result came.
        """
        if self.leaves_evaluations:
            evaluation.close()
            raise self.refuse()
        return await self._watched(evaluation, work or Work())

    async def unless_cut(self, call: Coroutine[Any, Any, T]) -> T:
        """The result of a model call. Raises RunStopped where the grace of a time limit was over before it came."""
        if self._cut:
            call.close()
            raise self.refuse()
        return await self._watched(call, Work(call=True))

    async def _watched(self, coroutine: Coroutine[Any, Any, T], work: Work) -> T:
        # In the caller's own task: at the end of a call its reply is counted before another call can begin.
        self._work.add(work)
        try:
            async with work.until:
                return await coroutine
        except TimeoutError:
            if not work.until.expired():
                raise  # the work's own
            raise self.refuse() from None
        finally:
            self._work.discard(work)


class Turn:
    """The permit of one model call: its first try is told of, and counted as under way until the end of `with`.

    Each failed try that another one follows is told of as `CallRetried`.
    """

    def __init__(
        self, stop: Stop, key: CallKey, event: Callable[[CallRetried], None], begun: Callable[[], None]
    ) -> None:
        self._stop, self._key, self._event, self._tell = stop, key, event, begun
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

    def retrying(self, retry: Retry) -> None:
        self._event(
            CallRetried(
                time=time.time(),
                key=self._key,
                cause=retry.cause,
                tries=retry.tries,
                wait=retry.wait,
                limit=retry.limit,
                max_tries=retry.max_tries,
            )
        )

    def __exit__(self, *_: object) -> None:
        self._stop.calls -= self._begun
