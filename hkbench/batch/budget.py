"""What a run may spend, and when it has. Told of the run's events, it ends the run by way of its `Stop`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from hkbench.errors import BudgetReached, RunStopped, TooManyFailures
from hkbench.lab import Stop
from hkbench.records import (
    Answered,
    AnyEvent,
    EvaluationFailed,
    MachineFailed,
    RunStarted,
    VerdictReached,
)
from hkbench.report.format import duration
from hkbench.store.costs import Spending, money

MIN_ATTEMPTS = 10  #: calls, or evaluations, of a session before a share of failed ones says anything


@dataclass(frozen=True)
class Limits:
    """Of a run folder, all its sessions together; `None`: no limit."""

    cost: float | None = None  #: in the currency of the price
    tokens: int | None = None  #: input and output of all calls
    seconds: float | None = None  #: wall time
    failures: float | None = None  #: share of a session's calls, or of its evaluations, 0..1


@dataclass
class _Steps:
    """Calls or evaluations of this session that came to an end."""

    name: str
    done: int = 0
    failed: int = 0
    last: str = ""

    def too_many(self, share: float) -> bool:
        return self.done >= MIN_ATTEMPTS and self.failed > share * self.done


class Budget:
    """Watch a run. `spending` and `seconds` are what the folder's earlier sessions came to."""

    def __init__(self, limits: Limits, stop: Stop, spending: Spending, seconds: float = 0.0) -> None:
        self._limits = limits
        self._stop = stop
        self._spending = spending
        self._earlier = seconds
        self._begun: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._calls, self._evaluations = _Steps("model calls"), _Steps("evaluations")

    def on_event(self, event: AnyEvent) -> None:
        """Take the next event of this session."""
        match event:
            case RunStarted():
                self._start()
            case Answered():
                self._count(self._calls)
                self._spending.take(event.key, event.usage, event.replayed)
                self._look()
            case MachineFailed():
                self._count(self._evaluations if isinstance(event, EvaluationFailed) else self._calls, event.message)
            case VerdictReached() if event.turns is not None:  # else nothing was run for it
                self._count(self._evaluations)
            case _:
                pass

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _start(self) -> None:
        self._begun = time.monotonic()
        self._look()
        if self._limits.seconds is not None:
            left = max(0.0, self._limits.seconds - self._earlier)
            self._timer = asyncio.get_running_loop().call_later(left, self._stop.expire, self._reached("--max-time"))

    def _look(self) -> None:
        """End the run when one of the limits is reached, or cannot be watched."""
        limits, spending = self._limits, self._spending
        for option, limit, spent in (
            ("--max-cost", limits.cost, spending.cautious_cost),
            ("--max-tokens", limits.tokens, spending.cautious_tokens),
        ):
            if limit is not None and spent is None:
                self._stop.request(self._unknown(option))
            elif limit is not None and spent is not None and spent >= limit:
                self._stop.request(self._reached(option))

    def _count(self, steps: _Steps, failure: str | None = None) -> None:
        steps.done += 1
        if failure is not None:
            steps.failed += 1
            steps.last = failure
        share = self._limits.failures
        if share is not None and steps.too_many(share):
            self._stop.request(lambda: TooManyFailures(self._failed(steps, share)))

    def _reached(self, option: str) -> Callable[[], RunStopped]:
        return lambda: BudgetReached(
            f"{option} {self._limit(option)} is used up: the run has spent {self._spent()}; "
            f"the same command with a larger {option} resumes it"
        )

    def _unknown(self, option: str) -> Callable[[], RunStopped]:
        return lambda: BudgetReached(
            f"{option} cannot be kept: the service did not say how many tokens its replies took; "
            f"the same command without {option} resumes the run"
        )

    def _limit(self, option: str) -> str:
        limits = self._limits
        if option == "--max-cost" and limits.cost is not None:
            return f"{limits.cost:g}"
        if option == "--max-tokens" and limits.tokens is not None:
            return f"{limits.tokens:,}"
        return duration(limits.seconds)

    def _spent(self) -> str:
        """Return all that was spent, as it stands now."""
        spending = self._spending
        cost = None if spending.cost is None else money(spending.cost, spending.currency)
        if spending.unpriced:
            cost = f"{cost} and an unknown part" if cost is not None else "an unknown amount of money"
        silent = f" ({spending.silent} replies did not say)" if spending.silent else ""
        now = self._earlier + (time.monotonic() - self._begun if self._begun is not None else 0.0)
        return f"{cost}, {spending.tokens:,} tokens{silent} and {duration(now)}"

    def _failed(self, steps: _Steps, share: float) -> str:
        return (
            f"{steps.failed} of {steps.done} {steps.name} failed by the service or the machine, more than "
            f"--fail-on-error {share:g} allows; the last one: {steps.last}. The same command resumes the run"
        )
