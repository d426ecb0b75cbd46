"""When a budget is reached, and what is said then."""

from __future__ import annotations

import asyncio

import pytest

from hkbench.batch.budget import MIN_ATTEMPTS, Budget, Limits
from hkbench.errors import BudgetReached, TooManyFailures
from hkbench.lab import Stop
from hkbench.records import (
    EvaluationFailed,
    GenerationFailed,
    Price,
    Rates,
    ReplyReceived,
    RunStarted,
    SampleKey,
    SlotTimes,
    Status,
    Usage,
    VerdictReached,
)
from hkbench.store.costs import Spending

PRICE = Price(currency="XTS", entry="m", rates=Rates(input=1.0, output=1.0), source="f")
MILLION = 1_000_000


def key(sample: int) -> SampleKey:
    return SampleKey(problem="1_ReLU", attempt=1, sample=sample)


def reply(sample: int, tokens: int | None = MILLION) -> ReplyReceived:
    usage = Usage(input=tokens, output=None if tokens is None else 0)
    return ReplyReceived(
        time=1.0, key=key(sample), model="m", usage=usage, seconds=1.0, tries=1, replayed=False, finish_reason="stop"
    )


def verdict(sample: int, *, ran: bool = True) -> VerdictReached:
    turns = SlotTimes(asked=0.0, building=0.0, loaded=0.0) if ran else None
    return VerdictReached(
        time=1.0, key=key(sample), status=Status.SLOW, kind=None, stage=None, speedup=0.5, seconds=1.0, turns=turns
    )


def watched(limits: Limits, spending: Spending | None = None, seconds: float = 0.0) -> tuple[Budget, Stop]:
    stop = Stop()
    return Budget(limits, stop, spending or Spending(PRICE), seconds), stop


async def test_money_and_tokens_end_the_run_where_the_limit_is_reached() -> None:
    for limits, option in ((Limits(cost=2.0), "--max-cost 2"), (Limits(tokens=2 * MILLION), "--max-tokens 2,000,000")):
        budget, stop = watched(limits)
        budget.on_event(RunStarted(time=0.0, resumed=False))
        budget.on_event(reply(1))
        assert not stop.requested
        budget.on_event(reply(2))
        budget.on_event(reply(3))  # was under way
        with pytest.raises(BudgetReached, match=rf"{option} is used up: the run has spent 3\.00 XTS, 3,000,000 tokens"):
            stop.check()


async def test_earlier_sessions_count() -> None:
    spending = Spending(PRICE)
    spending.take(key(1), Usage(input=MILLION, output=MILLION), replayed=False)
    budget, stop = watched(Limits(cost=2.0), spending)
    budget.on_event(RunStarted(time=0.0, resumed=True))
    assert stop.requested


async def test_no_limit_ends_nothing() -> None:
    budget, stop = watched(Limits())
    budget.on_event(RunStarted(time=0.0, resumed=False))
    for sample in range(50):
        budget.on_event(GenerationFailed(time=1.0, key=key(sample), error="E", message="m"))
        budget.on_event(reply(sample, None))
    budget.close()
    assert not stop.requested


async def test_what_cannot_be_watched_ends_the_run_too() -> None:
    budget, stop = watched(Limits(cost=100.0))
    budget.on_event(reply(1, None))
    with pytest.raises(BudgetReached, match="--max-cost cannot be kept"):
        stop.check()


async def test_time_ends_the_run_while_nothing_happens() -> None:
    budget, stop = watched(Limits(seconds=3600.0), seconds=3599.99)
    budget.on_event(RunStarted(time=0.0, resumed=True))
    with pytest.raises(BudgetReached, match="--max-time 1 h 00 min is used up"):
        await stop.wait(60.0)
    budget.close()


async def test_a_closed_budget_ends_nothing() -> None:
    budget, stop = watched(Limits(seconds=0.01))
    budget.on_event(RunStarted(time=0.0, resumed=False))
    budget.close()
    await asyncio.sleep(0.05)
    assert not stop.requested


async def test_failures_are_shares_of_calls_or_of_evaluations_once_there_are_enough() -> None:
    budget, stop = watched(Limits(failures=0.2))
    for sample in range(MIN_ATTEMPTS - 1):
        budget.on_event(GenerationFailed(time=1.0, key=key(sample), error="E", message="odd"))
    assert not stop.requested  # too few to say
    budget.on_event(reply(1))
    with pytest.raises(
        TooManyFailures, match=rf"{MIN_ATTEMPTS - 1} of {MIN_ATTEMPTS} model calls failed .* the last one: odd"
    ):
        stop.check()

    budget, stop = watched(Limits(failures=0.2))
    for sample in range(100):
        budget.on_event(reply(sample))
        budget.on_event(verdict(sample, ran=False))
    for sample in range(8):
        budget.on_event(verdict(sample))
    for sample in range(2):
        budget.on_event(EvaluationFailed(time=1.0, key=key(sample), error="E", message="lost"))
    assert not stop.requested  # two of ten are not more than a fifth
    budget.on_event(EvaluationFailed(time=1.0, key=key(9), error="E", message="lost"))
    with pytest.raises(TooManyFailures, match="3 of 11 evaluations"):
        stop.check()
