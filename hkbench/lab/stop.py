"""The request that a run end before its plan does, and how it ends what is under way."""

from __future__ import annotations

import asyncio
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
    """One evaluation or model call under way, which can be cancelled and left to the resume."""

    until: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    measuring: bool = False  #: a device is lent to it
    call: bool = False  #: of a model: paid for


class Stop:
    """The stop of one run, requested in one of three ways; the first request gives the reason.

    `request`: nothing new is asked of a model; what is under way or answered is finished. `expire`, for a time limit:
    only measurements and model calls under way are finished, within `GRACE` seconds. `cancel`, for Ctrl-C: only model
    calls are, however long they take.
    """

    def __init__(self, grace: float = GRACE) -> None:
        self.calls = 0  #: model calls under way
        self.cancelled = False
        self.expired = False
        self.on_request: Callable[[RunStopped], None] = lambda _: None  #: called once, at the first request
        self.skipped = False  #: whether the stop kept work from beginning or ending; else the run came to its end
        self._grace = grace
        self._reason: Reason | None = None
        self._requested = asyncio.Event()
        self._work: set[Work] = set()
        self._grace_over = False  #: nothing is waited for any more

    @property
    def requested(self) -> bool:
        return self._reason is not None

    @property
    def cancels_evaluations(self) -> bool:
        """Whether evaluations, which cost machine time only, are left to the resume, too."""
        return self.cancelled or self.expired

    def reason(self) -> RunStopped:
        """Say why, as it stands now: what is under way may still spend something."""
        assert self._reason is not None
        return self._reason()

    def mark_skipped(self) -> RunStopped:
        """Note that work was left to the resume; return the error to raise."""
        self.skipped = True
        return self.reason()

    def request(self, reason: Reason) -> None:
        """Keep new work from beginning from now on. The first reason stays."""
        self._set_reason(self._reason or reason)

    def cancel(self, reason: Reason) -> None:
        """Keep new work from beginning and cancel all evaluations; model calls are waited for, being paid for.

        To be called within a running event loop, as `expire` is.
        """
        if not self.cancelled:
            self.cancelled = True
            self._set_reason(reason)
            self._cancel_work(lambda work: not work.call)

    def expire(self, reason: Reason) -> None:
        """Keep new work from beginning; cancel evaluations without a device at once, the rest after the grace."""
        if not self.expired:
            self.expired = True
            self.request(reason)
            self._cancel_work(lambda work: not (work.call or work.measuring))
            asyncio.get_running_loop().call_later(self._grace, self._cut_off)

    def _set_reason(self, reason: Reason) -> None:
        first, self._reason = self._reason is None, reason
        self._requested.set()
        if first:
            self.on_request(reason())

    def _cut_off(self) -> None:
        self._grace_over = True
        self._cancel_work(lambda _: True)

    def _cancel_work(self, which: Callable[[Work], bool]) -> None:
        now = asyncio.get_running_loop().time()
        for work in self._work:
            if which(work) and not work.until.expired():
                work.until.reschedule(now)

    def check(self) -> None:
        """Raise the reason (RunStopped) if a stop is requested."""
        if self._reason is not None:
            raise self.mark_skipped()

    async def wait(self, seconds: float) -> None:
        """Sleep for `seconds`. Raises RunStopped as soon as a stop is requested."""
        self.check()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._requested.wait()
        self.check()

    async def run_unless_cancelled(self, evaluation: Coroutine[Any, Any, T], work: Work | None = None) -> T:
        """Run `evaluation` and return its result; its caller sets `work.measuring` while a device is lent to it.

        Raises RunStopped where it was cancelled, and so left to the resume, before the result came.
        """
        if self.cancels_evaluations:
            evaluation.close()
            raise self.mark_skipped()
        return await self._watched(evaluation, work or Work())

    async def run_within_grace(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a model call and return its result.

        Raises RunStopped where the grace of a time limit was over before it came.
        """
        if self._grace_over:
            call.close()
            raise self.mark_skipped()
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
            raise self.mark_skipped() from None
        finally:
            self._work.discard(work)


class CallPermit:
    """The permit of one model call: its first try is reported, and counted as under way until the end of `with`.

    Each failed try that another one follows is reported as `CallRetried`.
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
