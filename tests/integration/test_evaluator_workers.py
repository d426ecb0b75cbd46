"""One judge for several candidates, with real processes: on the CPU, with which judges do not stay otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from support.processes import left_behind
from support.small_problems import AFFINE, candidate_file, forward, problem_file

from hkbench.engine.evaluator import LocalEvaluator
from hkbench.engine.workers import DeviceWorkers
from hkbench.records import DeviceFacts, DeviceKind, EvaluationSettings, FailureKind, Problem, Stage, Track, Verdict
from hkbench.sandbox.client import ForkServer
from hkbench.sandbox.environment import kept_environment

pytestmark = pytest.mark.slow

SETTINGS = EvaluationSettings(
    busy_wait=0.0,
    shapes=0,
    track=Track.ANY,
    trials=2,
    timing_runs=3,
    timing_seconds=5.0,
    warmups=1,
    memory_gib=1.5,
    profile_slow=False,
)
RIGHT, WRONG = forward("return 2.0 * x + 1.0"), forward("return 2.0 * x")
DIES = forward("import os; os._exit(3)")
SETS_A_DEFAULT = AFFINE.replace("import torch\n", "import torch\n    torch.backends.cuda.matmul.allow_tf32 = True\n", 1)


class Faithful(DeviceWorkers):
    def _is_reusable(self, _index: int) -> bool:
        return True


class Noted(ForkServer):
    forks = 0

    def fork(self, fds: list[int], guard: Mapping[str, object] | None = None) -> None:
        self.forks += 1
        super().fork(fds, guard)


class DeviceWorker(LocalEvaluator):
    def __init__(self) -> None:
        super().__init__(DeviceKind.CPU, SETTINGS)
        tests = Path(__file__).parents[1]
        environment = kept_environment() | {"PYTHONPATH": f"{tests}:{tests.parent}"}
        self._workers = self._noted = Noted("support.standins.reusable_worker", environment)
        self._runners = self._noted_runners = Noted("hkbench.runner.main", kept_environment())

    @property
    def forks(self) -> int:
        return self._noted.forks

    @property
    def runners(self) -> int:
        return self._noted_runners.forks

    def _workers_of(self, devices: tuple[DeviceFacts, ...]) -> DeviceWorkers:
        return Faithful(
            (self._workers, self._runners), lambda folder: self._guards.baseline(folder), devices, self._locks
        )


@pytest.fixture
async def evaluator() -> AsyncIterator[DeviceWorker]:
    evaluator = DeviceWorker()
    async with evaluator:
        yield evaluator
    assert left_behind() == {}


async def judged(evaluator: LocalEvaluator, folder: Path, problem: Problem, source: str) -> Verdict:
    code = candidate_file(folder, source)
    verdict = (await evaluator.evaluate(problem, code, folder / "build", "cpp")).verdict
    assert verdict is not None
    return verdict


async def test_one_evaluator_measures_one_candidate_after_another(evaluator: DeviceWorker, tmp_path: Path) -> None:
    problem = problem_file(tmp_path / "problems", AFFINE)
    forks, runners = evaluator.forks, evaluator.runners
    found = [
        await judged(evaluator, tmp_path / str(number), problem, source)
        for number, source in enumerate((RIGHT, WRONG, DIES, RIGHT))
    ]
    assert [verdict.failure and verdict.failure.kind for verdict in found] == [
        None, FailureKind.WRONG_VALUES, FailureKind.CRASH, None,
    ]  # fmt: skip
    assert evaluator.forks - forks == 4, "one for each candidate's build, none to measure"
    assert evaluator.runners - runners == 4, "the candidates', none for a baseline"


async def test_a_problem_that_changes_torchs_settings_has_the_evaluator_for_itself(
    evaluator: DeviceWorker, tmp_path: Path
) -> None:
    odd = problem_file(tmp_path / "odd", SETS_A_DEFAULT)
    usual = problem_file(tmp_path / "usual", AFFINE)
    forks, runners = evaluator.forks, evaluator.runners
    for number, problem in enumerate((usual, odd, usual)):
        verdict = await judged(evaluator, tmp_path / str(number), problem, RIGHT)
        assert verdict.failure is None, verdict
    assert evaluator.forks - forks == 3 + 1, "one more after the odd one"
    assert evaluator.runners - runners == 3 + 1, "and what the odd one set in the baseline's runner is gone with it"


async def test_a_cancelled_evaluation_takes_its_evaluator_with_it(evaluator: DeviceWorker, tmp_path: Path) -> None:
    problem = problem_file(tmp_path / "problems", AFFINE)
    forks = evaluator.forks
    begun = asyncio.Event()
    code = candidate_file(tmp_path / "hung", forward("while True: pass"))

    def told(stage: Stage, _device: int | None) -> None:
        if stage is Stage.RUN:
            begun.set()

    build = tmp_path / "hung" / "build"
    hung = asyncio.create_task(evaluator.evaluate(problem, code, build, "cpp", told))
    await asyncio.wait_for(begun.wait(), 60.0)
    hung.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hung
    verdict = await judged(evaluator, tmp_path / "next", problem, RIGHT)
    assert verdict.failure is None, verdict
    assert evaluator.forks - forks == 2 + 1
