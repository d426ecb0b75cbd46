"""What a verdict on a GPU says beyond the speed-up over eager: further baselines, the floor, the clocks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import torch
from support.small_problems import candidate_file, problem_file

from hkbench.engine.evaluator import LocalEvaluator
from hkbench.records import BaselineName, BoundQuality, DeviceKind, EvaluationSettings, Problem, Track, Verdict

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

PROBLEM = """
    import torch
    import torch.nn as nn

    class Model(nn.Module):
        def forward(self, x):
            return 0.5 * x * (1.0 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))

    class ModelBest(nn.Module):
        def forward(self, x):
            return BEST

    def get_inputs():
        return [torch.randn(8192, 8192)]

    def get_init_inputs():
        return []
"""
GELU = "nn.functional.gelu(x, approximate='tanh')"
CANDIDATE = f"""
    class ModelNew(nn.Module):
        def forward(self, x):
            return {GELU}
"""


def judged(problem: Problem, folder: Path) -> Verdict:
    settings = EvaluationSettings(track=Track.ANY, trials=2, baseline="eager,compile,best", profile_slow=False)
    kind = DeviceKind.ROCM if torch.version.hip else DeviceKind.CUDA

    async def work() -> Verdict:
        async with LocalEvaluator(kind, settings) as evaluator:
            found = await evaluator.evaluate(problem, candidate_file(folder, CANDIDATE), folder / "build", "cuda")
        assert found.verdict is not None
        return found.verdict

    return asyncio.run(work())


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    folder = tmp_path_factory.mktemp("gelu")
    return judged(problem_file(folder / "problems", PROBLEM.replace("BEST", GELU)), folder)


def test_each_baseline_is_timed(verdict: Verdict) -> None:
    assert verdict.failure is None and verdict.speedup is not None, verdict.failure
    compiled, best = verdict.baselines
    assert (compiled.name, best.name) == (BaselineName.COMPILE, BaselineName.BEST)
    for one in verdict.baselines:
        assert one.timing is not None and one.over_eager is not None and one.speedup is not None, one.reason
        assert one.over_eager.low > 1.0, "one kernel for eager's many"
    assert compiled.notes == (), "no graph break, and nothing compiled anew"
    assert best.speedup is not None and best.speedup.low <= 1.0 <= best.speedup.high, (
        "the candidate is the library's call"
    )
    assert verdict.over_best is not None and verdict.over_best.value < verdict.speedup.value


def test_wrong_answers_are_no_baseline(tmp_path: Path) -> None:
    found = judged(problem_file(tmp_path / "problems", PROBLEM.replace("BEST", "2.0 * x")), tmp_path)
    assert found.speedup is not None
    best = found.baselines[1]
    assert best.timing is None and best.reason is not None and "wrong" in best.reason


def test_the_floor_is_tight_and_near(verdict: Verdict) -> None:
    if verdict.floor is None:
        pytest.skip("the peak rates of this GPU are not known")
    assert verdict.sol is not None and verdict.sol.bound is BoundQuality.TIGHT
    assert 0.4 < verdict.sol.fraction <= 1.0


def test_the_clocks_stand_in_it(verdict: Verdict) -> None:
    found = verdict.readback
    assert found is not None, "neither the driver's library nor its tool says anything"
    assert found.during, "the measurement takes longer than a look"
    for one in (found.before, *found.during, found.after):
        assert one.clock_mhz is not None and one.clock_mhz > 0.0
        assert one.power_watts is not None and one.temperature is not None
