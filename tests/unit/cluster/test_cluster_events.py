"""What the journal is told of cards, and how far they differ on equals."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.cluster_site import QUICK, FakeSite, problem

from hkbench.cluster import ClusterEvaluator, members
from hkbench.cluster.lane import CardLost
from hkbench.cluster.pool import MAX_FAILURES
from hkbench.errors import IsolationUnavailable, WorkerLost
from hkbench.records import AnyEvent, CardFailed, CardJoined, EvaluationSettings


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "NODES_SECONDS", 0.02)


def on(site: FakeSite) -> ClusterEvaluator:
    return ClusterEvaluator(site, None, EvaluationSettings(), tempo=QUICK)


async def test_cards_that_fail_or_come_later_are_told_of(tmp_path: Path) -> None:
    site, told = FakeSite(a=0, b=0), list[AnyEvent]()
    code = tmp_path / "code.py"
    code.write_text("")
    site.does("a").failing = [CardLost("killed")] * 100
    async with on(site) as evaluator:
        evaluator.record(told.append)
        async with asyncio.timeout(5.0):
            while not any(isinstance(event, CardFailed) and event.left_out for event in told):
                await asyncio.gather(*(evaluator.evaluate(problem(), code, tmp_path, "cpp") for _ in range(4)))
            site.join("c")
            while not any(isinstance(event, CardJoined) for event in told):
                await asyncio.sleep(0.01)
        known = {place.index: place for place in evaluator.places}
    failed = [event for event in told if isinstance(event, CardFailed)]
    assert [event.left_out for event in failed] == [False] * (MAX_FAILURES - 1) + [True]
    assert {event.place for event in failed} == {known[0]} and failed[0].place.host == "host of a"
    (joined,) = [event for event in told if isinstance(event, CardJoined)]  # none for one that was there, or is again
    assert joined.place.index == 2


async def test_a_card_that_never_opened_is_told_of_once_the_session_has_begun() -> None:
    site, told = FakeSite(a=0, b=0), list[AnyEvent]()
    site.does("a").opening = [IsolationUnavailable("no namespaces")]
    async with on(site) as evaluator:
        evaluator.record(told.append)
        assert [place.index for place in evaluator.places] == [1]
    (event,) = told
    assert isinstance(event, CardFailed) and event.left_out and (event.place.index, event.place.name) == (0, "a")


async def test_equals_on_each_card_say_how_far_cards_differ() -> None:
    site = FakeSite(a=0, b=0, c=0)
    site.does("a").takes, site.does("b").takes = 1.0e-3, 1.1e-3
    site.does("c").failing = [WorkerLost("its device fell off")]
    async with on(site) as evaluator:
        found = await evaluator.check_cards(problem(), "cpp")
        assert all(lane.busy == 0 for lane in evaluator._pool.ready)
    assert found.spread == pytest.approx(0.1)
    assert [(card.device, card.seconds is None) for card in found.cards] == [(0, False), (1, False), (2, True)]
    assert found.cards[0].ratio is not None and found.cards[0].ratio.value == 1.0
    assert found.cards[2].message is not None


async def test_of_one_card_or_without_times_nothing_is_known() -> None:
    async with on(FakeSite(a=0)) as evaluator:
        found = await evaluator.check_cards(problem(), "cpp")
    assert found.spread is None and found.cards[0].message is not None
