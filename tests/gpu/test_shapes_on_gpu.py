"""A correct candidate at further shapes on a GPU, whose memory each shape shares anew: `pytest -m gpu`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.small_problems import AFFINE_OF_SIZES, candidate_file, forward, problem_file

from hkbench.engine.evaluator import LocalEvaluator
from hkbench.records import DeviceKind, EvaluationSettings, FailureKind, Shapes, Status, Track

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU on this machine"),
]

SETTINGS = EvaluationSettings(shapes=6, track=Track.ANY, trials=2, timing_runs=20, profile_slow=False)
#: A workspace that outlives the model, from the memory that the evaluator maps, and one that a shape outgrows.
KEPT_WORKSPACE = """
    if "space" not in globals() or space.numel() < x.numel():
        globals()["space"] = torch.empty(x.numel(), device=x.device)
    torch.mul(x.flatten(), 2.0, out=space[: x.numel()])
    return space[: x.numel()].view(x.shape) + 1.0
"""
BROKEN = """
    if x.shape[0] < 16:
        return x[torch.full((1,), 10**6, device=x.device)]
    return 2.0 * x + 1.0
"""


async def looked_at(folder: Path, *bodies: str) -> list[Shapes]:
    """What each of these candidates comes to, by one evaluator."""
    problem = problem_file(folder / "problems", AFFINE_OF_SIZES)
    found = []
    async with LocalEvaluator(DeviceKind.ROCM if torch.version.hip else DeviceKind.CUDA, SETTINGS) as evaluator:
        for body in bodies:
            code = candidate_file(folder, forward(body))
            verdict = (await evaluator.evaluate(problem, code, folder / "build", "triton")).verdict
            assert verdict is not None and verdict.status in (Status.FAST, Status.SLOW), verdict
            assert verdict.shapes is not None
            found.append(verdict.shapes)
        assert evaluator.left_behind == []
    return found


async def test_who_is_right_is_right_at_all_of_them_and_the_workers_stay(tmp_path: Path) -> None:
    for shapes in await looked_at(tmp_path, "return 2.0 * x + 1.0", KEPT_WORKSPACE, "return 2.0 * x + 1.0"):
        assert (shapes.right, len(shapes.results)) == (6, 6), shapes
        assert all(one.speedup is not None for one in shapes.results)


async def test_a_context_that_a_shape_breaks_hides_no_other_shape(tmp_path: Path) -> None:
    (shapes,) = await looked_at(tmp_path, BROKEN)
    assert len(shapes.results) == 6
    for one in shapes.results:
        breaks = one.constants.get("rows", 16) < 16
        assert (one.failure is not None) == breaks, one
        assert one.failure is None or one.failure.kind is FailureKind.CRASH, one
