"""A run that is asked to stop: nothing is begun, and what is under way is finished unless it is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from hkbench.errors import BudgetReached, Interrupted, RunStopped
from hkbench.lab import Stop
from hkbench.lab.stop import Work


def spent() -> RunStopped:
    return BudgetReached("spent")


def interrupted() -> RunStopped:
    return Interrupted("interrupted")


async def test_the_first_reason_stays_but_an_interrupt_takes_its_place() -> None:
    stop = Stop()
    stop.check()
    assert not stop.requested
    stop.request(spent)
    stop.request(interrupted)
    with pytest.raises(BudgetReached, match="spent"):
        stop.check()
    stop.cancel(interrupted)
    with pytest.raises(Interrupted):
        stop.check()


async def test_a_wait_ends_with_the_run() -> None:
    stop = Stop()
    await stop.wait(0.001)
    waiting = asyncio.create_task(stop.wait(1000.0))
    await asyncio.sleep(0)
    stop.request(spent)
    with pytest.raises(BudgetReached):
        await waiting


async def test_work_is_finished_at_a_budget_and_left_when_cancelled() -> None:
    stop, go_on, cleaned = Stop(), asyncio.Event(), list[str]()

    async def work() -> str:
        try:
            await go_on.wait()
        except asyncio.CancelledError:
            cleaned.append("cleaned")
            raise
        return "done"

    first = asyncio.create_task(stop.run_unless_cancelled(work()))
    await asyncio.sleep(0)
    stop.request(spent)
    go_on.set()
    assert await first == "done"
    assert not stop.skipped

    go_on.clear()
    second = asyncio.create_task(stop.run_unless_cancelled(work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    stop.cancel(interrupted)
    with pytest.raises(Interrupted):
        await second
    assert cleaned == ["cleaned"]
    with pytest.raises(Interrupted):
        await stop.run_unless_cancelled(work())
    assert stop.skipped


async def test_a_cancellation_from_outside_is_none_of_its_own() -> None:
    stop = Stop()
    work = asyncio.create_task(stop.run_unless_cancelled(asyncio.sleep(1000.0)))
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def forever(ended: list[str], name: str) -> None:
    try:
        await asyncio.sleep(1000.0)
    finally:
        ended.append(name)


async def test_at_a_time_limit_only_what_a_device_measures_and_calls_are_finished() -> None:
    stop, ended, go_on = Stop(), list[str](), asyncio.Event()
    measured = Work(measuring=True)
    measurement = asyncio.create_task(stop.run_unless_cancelled(go_on.wait(), measured))
    queued = asyncio.create_task(stop.run_unless_cancelled(forever(ended, "queued")))
    call = asyncio.create_task(stop.run_within_grace(go_on.wait()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    stop.expire(spent)
    with pytest.raises(BudgetReached):
        await queued
    assert ended == ["queued"] and not measurement.done() and not call.done()
    with pytest.raises(BudgetReached):
        await stop.run_unless_cancelled(forever(ended, "never begun"))
    go_on.set()
    assert await measurement and await call
    assert ended == ["queued"] and stop.skipped


async def test_after_the_grace_of_a_time_limit_nothing_is_waited_for() -> None:
    stop, ended = Stop(grace=0.01), list[str]()
    measurement = asyncio.create_task(stop.run_unless_cancelled(forever(ended, "measured"), Work(measuring=True)))
    call = asyncio.create_task(stop.run_within_grace(forever(ended, "called")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    stop.expire(spent)
    for task in (measurement, call):
        with pytest.raises(BudgetReached):
            await task
    assert sorted(ended) == ["called", "measured"]
    with pytest.raises(BudgetReached):
        await stop.run_within_grace(forever(ended, "never asked"))


async def test_ctrl_c_after_a_time_limit_ends_measurements_too() -> None:
    stop, ended = Stop(), list[str]()
    measurement = asyncio.create_task(stop.run_unless_cancelled(forever(ended, "measured"), Work(measuring=True)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    stop.expire(spent)
    stop.cancel(interrupted)
    with pytest.raises(Interrupted):
        await measurement
