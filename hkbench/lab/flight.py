"""Attempts under way side by side: begun one by one, and told of one by one, in an order that a resume repeats."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from hkbench.errors import HkbenchError, ModelUnavailable
from hkbench.lab.samples import Ask, Proposal, Sample


@dataclass(frozen=True)
class Begun:
    """An attempt whose prompt or code is recorded, and which is not worked on before `judge` is called."""

    attempt: int
    samples: int
    judge: Callable[[], Coroutine[Any, Any, list[Sample]]]


class Flight:
    """The attempts of one problem that are under way, as `Lab.flight` gives them.

    Attempts are told of in the order in which their verdicts stand in the journal. In a resume, those whose verdicts
    are recorded come first and in that order; the others are begun under the same numbers, and are worked on when the
    recorded ones are told of. Whoever decides on what was told, and on nothing else, goes the same way again.

    At the end of `async with` what is still under way comes to its end; after an error that is not of hkbench's own
    kinds it is cancelled.
    """

    def __init__(
        self,
        begin: Callable[[Ask | Proposal], Awaitable[Begun]],
        close: Callable[[Sequence[Sample]], list[Sample]],
        place: Callable[[Begun], int | None],
    ) -> None:
        """Take `place`: where the last verdict of an attempt stands in the journal; None: it lacks one."""
        self._begin = begin
        self._close = close
        self._place = place
        self._under_way: dict[int, Begun] = {}
        self._work: dict[int, asyncio.Task[list[Sample]]] = {}
        self._replays = True  # there may be recorded verdicts that are not told of

    async def __aenter__(self) -> Self:
        return self

    async def begin(self, step: Ask | Proposal) -> int:
        """Begin an attempt, and return its number.

        Raises:
            HkbenchError: as of `Lab.prompt` and `Lab.propose`.
        """
        begun = await self._begin(step)
        self._under_way[begun.attempt] = begun
        if self._place(begun) is not None or not self._replays:
            self._start(begun)
        return begun.attempt

    async def next_judged(self) -> tuple[int, list[Sample]]:
        """Wait for the next attempt to be judged, close it, and return its number and its judged samples.

        Raises:
            HkbenchError: as of `Lab.generate` and `Lab.evaluate`.
        """
        assert self._under_way, "nothing is under way"
        if not self._judged():
            self._start_all()
            await asyncio.wait(self._work.values(), return_when=asyncio.FIRST_COMPLETED)
        attempt = self._judged()[0]
        samples = await self._work[attempt]
        del self._under_way[attempt], self._work[attempt]
        return attempt, self._close(samples)

    def _judged(self) -> list[int]:
        """Return the attempts under way that have come to their verdicts or have failed, as they are to be told of."""
        places = {attempt: self._place(begun) for attempt, begun in self._under_way.items()}
        over = [attempt for attempt, work in self._work.items() if work.done() and places[attempt] is None]
        found = {attempt: place for attempt, place in places.items() if place is not None}
        return sorted(found | dict.fromkeys(over, math.inf), key=lambda attempt: found.get(attempt, math.inf))

    def _start(self, begun: Begun) -> None:
        self._work[begun.attempt] = asyncio.create_task(begun.judge())

    def _start_all(self) -> None:
        self._replays = False
        for attempt, begun in self._under_way.items():
            if attempt not in self._work:
                self._start(begun)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        foreign = error is not None and not isinstance(error, HkbenchError)
        if error is None:
            self._start_all()
        if foreign:
            for work in self._work.values():
                work.cancel()
        await asyncio.gather(*self._work.values(), return_exceptions=True)
        if foreign:
            return
        failures: list[BaseException] = [] if error is None else [error]
        for attempt in self._judged():
            failure = self._work[attempt].exception()
            if failure is None:
                self._close(self._work[attempt].result())
            else:
                failures.append(failure)
        if failures:
            raise_failures(failures)


def raise_failures(results: Sequence[object]) -> None:
    """Raise what went wrong; a cancellation or a fault of hkbench itself goes first, alone."""
    failures = [result for result in results if isinstance(result, BaseException)]
    for failure in failures:
        if not isinstance(failure, HkbenchError):
            raise failure
    service = [failure for failure in failures if isinstance(failure, ModelUnavailable)]
    raise (service or failures)[0]
