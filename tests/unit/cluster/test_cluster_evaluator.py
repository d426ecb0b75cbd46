"""The controller's side: which card gets what, and what becomes of it when machines fail."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from support.cluster_site import QUICK, FakeSite, problem

from hkbench.cluster import ClusterEvaluator, members
from hkbench.cluster.address import ClusterUnavailable
from hkbench.cluster.lane import CardLost
from hkbench.cluster.node import NodesDiffer
from hkbench.cluster.pool import MAX_FAILURES, MAX_LOSSES, MAX_TRIES
from hkbench.cluster.site import Node
from hkbench.engine import EvaluationResult
from hkbench.errors import (
    DeviceUnavailable,
    InternalError,
    IsolationUnavailable,
    ProblemError,
    ToolchainUnavailable,
    WorkerLost,
)
from hkbench.records import DeviceKind, EvaluationSettings, IsolationLevel, Stage

SETTINGS = EvaluationSettings()


class Run:
    """A run over fake nodes, and the candidates that it sends."""

    def __init__(self, evaluator: ClusterEvaluator, folder: Path, told: list[str]) -> None:
        self.evaluator = evaluator
        self.told = told
        self._folder = folder
        self._count = 0

    async def judge(self, on_stage: Callable[[Stage, int | None], None] = lambda *_: None) -> EvaluationResult:
        self._count += 1
        code = self._folder / f"candidate_{self._count}.py"
        code.write_text(str(self._count))
        return await self.evaluator.evaluate(problem(), code, self._folder / "build", "cpp", on_stage)

    async def judge_all(self, count: int) -> list[EvaluationResult]:
        return await asyncio.wait_for(asyncio.gather(*(self.judge() for _ in range(count))), 10.0)


Begin = Callable[..., AbstractAsyncContextManager[Run]]


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Begin:
    monkeypatch.setattr(members, "NODES_SECONDS", 0.02)

    @asynccontextmanager
    async def begun(
        site: FakeSite, kind: DeviceKind | None = None, settings: EvaluationSettings = SETTINGS, mixed: bool = False
    ) -> AsyncIterator[Run]:
        told: list[str] = []
        async with ClusterEvaluator(site, kind, settings, mixed=mixed, tell=told.append, tempo=QUICK) as evaluator:
            yield Run(evaluator, tmp_path, told)

    return begun


def judged(site: FakeSite) -> Counter[bytes]:
    return Counter(code for does in site.behaviours.values() for code in does.judged)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5.0):
        while not holds():
            await asyncio.sleep(0.01)


async def test_all_cards_work_and_each_candidate_is_judged_once(begin: Begin) -> None:
    site = FakeSite(a=2, b=2)
    async with begin(site) as run:
        found = await run.judge_all(40)
        assert [place.index for place in run.evaluator.places] == [0, 1, 2, 3]
    assert set(judged(site).values()) == {1} and len(judged(site)) == 40
    assert {result.turns.device for result in found if result.turns is not None} == {0, 1, 2, 3}
    assert site.closed


async def test_a_verdict_says_host_and_card_by_the_run_s_number(begin: Begin) -> None:
    site = FakeSite(a=0, b=0)
    site.does("a").seconds = 0.3
    stages: list[tuple[Stage, int | None]] = []
    async with begin(site) as run:
        first = asyncio.create_task(run.judge())
        await asyncio.sleep(0.05)
        second = await run.judge(lambda stage, device: stages.append((stage, device)))
        await first
    assert second.verdict is not None and second.verdict.conditions.host == "host of b"
    assert stages == [(Stage.BUILD, None), (Stage.RUN, 1)]


async def test_times_are_those_of_the_controller_s_clock(begin: Begin) -> None:
    site = FakeSite(a=0)
    site.does("a").ahead = 5000.0
    async with begin(site) as run:
        lane = run.evaluator._pool.ready[0]
        await until(lambda: lane.skew != 0.0)
        found = await run.judge()
    assert found.turns is not None and abs(found.turns.building - time.time()) < 100.0


async def test_work_moves_from_a_card_whose_process_dies(begin: Begin) -> None:
    site = FakeSite(a=0, b=0)
    site.does("a").failing = [CardLost("killed")]
    async with begin(site) as run:
        await run.judge_all(12)
        await until(lambda: len(run.evaluator._pool.ready) == 2)
    assert set(judged(site).values()) == {1} and len(judged(site)) == 12
    assert site.does("a").started == 2 and site.does("a").stopped >= 1


async def test_a_late_verdict_of_a_card_that_hung_does_not_count(begin: Begin) -> None:
    site = FakeSite(a=0, b=0)
    site.does("b").seconds = 0.2
    site.does("a").deaf = True
    async with begin(site) as run:
        asked = time.monotonic()
        found = asyncio.create_task(run.judge())
        result = await asyncio.wait_for(found, 5.0)
        assert time.monotonic() - asked < QUICK.ping + QUICK.answer + 2.0
        site.does("a").deaf = False
        await asyncio.sleep(0.1)
    assert result.verdict is not None and result.verdict.conditions.host == "host of b"
    assert site.does("a").judged == []


async def test_a_card_that_answers_and_comes_to_nothing_is_lost_too(begin: Begin) -> None:
    site = FakeSite(a=0, b=0)
    site.does("a").stuck = True
    async with begin(site) as run:
        await run.judge_all(2)
        assert any(line.startswith("a failed") for line in run.told)
    assert len(site.does("b").judged) == 2


async def test_a_node_that_fails_three_times_is_left_out_and_named(begin: Begin) -> None:
    site = FakeSite(a=0, b=0)
    site.does("a").failing = [CardLost("killed")] * 100
    async with begin(site) as run:
        while "a" not in run.evaluator._pool.left_out:
            await run.judge_all(4)
        await run.judge_all(4)
    assert site.does("a").started == MAX_FAILURES
    assert sum(line.startswith("a is left out") for line in run.told) == 1


async def test_a_verdict_in_between_forgives_failures(begin: Begin) -> None:
    site = FakeSite(a=0)
    async with begin(site) as run:
        for _ in range(MAX_FAILURES + 2):
            site.does("a").failing = [CardLost("killed")]
            await asyncio.wait_for(run.judge(), 5.0)
        assert not run.evaluator._pool.left_out


async def test_a_node_that_goes_and_comes_back(begin: Begin) -> None:
    site = FakeSite(a=1, b=1)
    async with begin(site) as run:
        site.does("a").seconds = site.does("b").seconds = 0.05
        work = asyncio.create_task(run.judge_all(20))
        await asyncio.sleep(0.02)
        site.does("a").deaf = True  # as its process has gone with it
        site.leave("a")
        await work
        site.does("a").deaf = False
        site.join("a", 1)
        await until(lambda: len(run.evaluator._pool.ready) == 2)
        assert [lane.index for lane in run.evaluator._pool.ready] == [0, 1]
        await run.judge_all(8)
    assert set(judged(site).values()) == {1} and len(judged(site)) == 28


async def test_what_the_machine_fails_at_is_tried_elsewhere_and_given_up(begin: Begin) -> None:
    site = FakeSite(a=0, b=0, c=0, d=0)
    for name in "abcd":
        site.does(name).failing = [InternalError("a full disk")]
    async with begin(site) as run:
        with pytest.raises(InternalError, match="full disk"):
            await run.judge()
        assert sum(not site.does(name).failing for name in "abcd") == MAX_TRIES
        assert (await run.judge()).verdict is not None


async def test_what_takes_every_card_with_it_is_given_up(begin: Begin) -> None:
    site = FakeSite(**{f"node{number}": 0 for number in range(MAX_LOSSES + 2)})
    for number in range(MAX_LOSSES + 2):
        site.does(f"node{number}").failing = [CardLost("killed")]
    async with begin(site) as run:
        with pytest.raises(WorkerLost):
            await asyncio.wait_for(run.judge(), 5.0)
    assert sum(not does.failing for does in site.behaviours.values()) == MAX_LOSSES


async def test_what_no_other_card_would_change_is_not_tried_again(begin: Begin) -> None:
    site = FakeSite(a=0, b=0)
    site.does("a").failing = [ProblemError("its own code fails")]
    site.does("b").failing = [ProblemError("its own code fails")]
    async with begin(site) as run:
        with pytest.raises(ProblemError):
            await run.judge()
        assert len(site.does("a").failing + site.does("b").failing) == 1
        assert not any("failed" in line for line in run.told)


async def test_without_any_card_work_ends_by_an_error(begin: Begin) -> None:
    site = FakeSite(a=0)
    async with begin(site) as run:
        site.leave("a")
        await until(lambda: not run.evaluator._pool.ready)
        with pytest.raises(DeviceUnavailable):
            await asyncio.wait_for(run.judge(), 5.0)


async def test_a_cancelled_evaluation_gives_its_card_back(begin: Begin) -> None:
    site = FakeSite(a=0)
    site.does("a").seconds = 30.0
    async with begin(site) as run:
        task = asyncio.create_task(run.judge())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert run.evaluator._pool.ready[0].busy == 0


async def test_cards_that_cannot_confine_candidates_are_refused(begin: Begin) -> None:
    site = FakeSite(a=0, b=0)
    for name in "ab":
        site.does(name).opening = [IsolationUnavailable("no namespaces")]
    with pytest.raises(DeviceUnavailable, match="no namespaces"):
        async with begin(site):
            pass
    assert site.closed


async def test_every_card_is_told_to_confine_fully(begin: Begin) -> None:
    site = FakeSite(a=0)
    async with begin(site, settings=EvaluationSettings(require_isolation=IsolationLevel.LIMITS)) as run:
        order = run.evaluator._pool.ready[0].link.order  # type: ignore[attr-defined]
    assert order.settings.require_isolation is IsolationLevel.FULL


async def test_a_node_without_the_tools_is_left_out(begin: Begin) -> None:
    site = FakeSite(a=0, b=0)
    site.does("a").lacks = ToolchainUnavailable("no ninja")
    async with begin(site) as run:
        await run.evaluator.require("cpp")
        await run.judge_all(6)
        site.does("b").lacks = ToolchainUnavailable("no compiler")
        with pytest.raises(ToolchainUnavailable):
            await run.evaluator.require("cpp")
    assert not site.does("a").judged


async def test_nodes_that_do_not_judge_alike_are_refused(begin: Begin) -> None:
    site = FakeSite(a=0, b=0)
    site.decisive["b"] = {"hkbench": "1", "torch": "3"}
    with pytest.raises(NodesDiffer, match="torch is 2 on a, but 3 on b"):
        async with begin(site):
            pass


async def test_a_node_that_comes_later_and_differs_takes_no_part(begin: Begin) -> None:
    site = FakeSite(a=0)
    site.decisive["b"] = {"hkbench": "2", "torch": "2"}
    async with begin(site) as run:
        site.join("b")
        await until(lambda: any(line.startswith("node b takes no part") for line in run.told))
        assert len(run.evaluator._pool.ready) == 1


async def test_a_node_that_cannot_say_what_it_is_takes_no_part(begin: Begin) -> None:
    site = FakeSite(a=0, b=0)
    site.silent = {"a"}
    async with begin(site) as run:
        await run.judge_all(4)
        assert any(line.startswith("node a takes no part") for line in run.told)
    assert len(site.does("b").judged) == 4


async def test_a_cluster_that_does_not_answer_is_asked_again(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    site = FakeSite(a=0)

    async def silent() -> tuple[Node, ...]:
        raise ClusterUnavailable("it does not answer")

    async with begin(site) as run:
        with monkeypatch.context() as patched:
            patched.setattr(site, "nodes", silent)
            await until(lambda: any("asked again" in line for line in run.told))
        site.join("b")
        await until(lambda: len(run.evaluator._pool.ready) == 2)
        assert sum("asked again" in line for line in run.told) == 1


async def test_a_card_that_is_lost_while_it_is_asked_for_tools_stays(begin: Begin) -> None:
    site = FakeSite(a=0, b=0)
    site.does("a").lacks = CardLost("killed")
    async with begin(site) as run:
        await run.evaluator.require("cpp")
        assert not run.evaluator._pool.left_out
        site.does("b").lacks = CardLost("killed")
        with pytest.raises(DeviceUnavailable):
            await run.evaluator.require("cpp")


async def test_further_differences_are_named(begin: Begin) -> None:
    async with begin(FakeSite(a=0, b=0)) as run:
        assert any("driver is of a on a, but of b on b" in line for line in run.told)


async def test_cards_of_several_models_only_when_told_to(begin: Begin) -> None:
    site = FakeSite(a=1, b=1)
    site.does("b").model = "another"
    with pytest.raises(NodesDiffer, match="another"):
        async with begin(site):
            pass
    async with begin(site, mixed=True) as run:
        await run.judge_all(8)
    assert site.does("b").judged


async def test_a_verdict_on_another_candidate_is_a_failure_of_the_machine(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    from support import cluster_site

    real = cluster_site.verdict
    monkeypatch.setattr(cluster_site, "verdict", lambda work, _code: real(work, b"another one"))
    async with begin(FakeSite(a=0, b=0, c=0)) as run:
        with pytest.raises(WorkerLost):
            await run.judge()


async def test_a_kind_that_no_node_has(begin: Begin) -> None:
    with pytest.raises(DeviceUnavailable):
        async with begin(FakeSite(a=0), DeviceKind.CUDA):
            pass
