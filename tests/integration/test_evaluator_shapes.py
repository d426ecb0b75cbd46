"""A correct candidate at further shapes: which it is right at, and that no shape is hidden by another's failure."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from support.small_problems import AFFINE_OF_SIZES, LINEAR, candidate_file, forward, problem_file

from hkbench.engine.evaluator import LocalEvaluator
from hkbench.records import (
    DeviceKind,
    EvaluationSettings,
    FailureKind,
    Problem,
    ShapeKind,
    Shapes,
    Stage,
    Status,
    Track,
    Verdict,
)

pytestmark = [pytest.mark.alone, pytest.mark.asyncio(loop_scope="module")]

SETTINGS = EvaluationSettings(
    busy_wait=0.0, shapes=4, track=Track.ANY, trials=1, timing_runs=3, timing_seconds=2.0, warmups=0, profile_slow=False
)
REQUIRED = SETTINGS.model_copy(update={"require_shapes": True, "shapes": 2})
CORRECT = (Status.FAST, Status.SLOW)
#: Right at the problem's own shape alone, 16 x 24.
ONLY_ITS_OWN = "if x.shape != (16, 24):\n    {instead}\nreturn 2.0 * x + 1.0"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def evaluator() -> AsyncIterator[LocalEvaluator]:
    async with LocalEvaluator(DeviceKind.CPU, SETTINGS) as evaluator:
        yield evaluator


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def demanding() -> AsyncIterator[LocalEvaluator]:
    async with LocalEvaluator(DeviceKind.CPU, REQUIRED) as evaluator:
        yield evaluator


@pytest.fixture
def affine(tmp_path: Path) -> Problem:
    return problem_file(tmp_path / "problems", AFFINE_OF_SIZES)


async def judged(evaluator: LocalEvaluator, problem: Problem, source: str, folder: Path) -> tuple[Verdict, Shapes]:
    found = await evaluator.evaluate(problem, candidate_file(folder, source), folder / "build", "cpp")
    assert found.verdict is not None and found.verdict.shapes is not None, found.verdict
    return found.verdict, found.verdict.shapes


async def test_one_that_is_right_everywhere(evaluator: LocalEvaluator, affine: Problem, tmp_path: Path) -> None:
    verdict, shapes = await judged(evaluator, affine, forward("return 2.0 * x + 1.0"), tmp_path)
    assert verdict.status in CORRECT and Stage.SHAPES in [entry.stage for entry in verdict.stages]
    assert (shapes.right, len(shapes.results), shapes.failed, shapes.not_checked) == (4, 4, (), ())
    visible = [one.constants for one in shapes.results if one.visible]
    assert len(visible) == 2 and all(one in affine.shapes for one in visible)
    drawn = [one for one in shapes.results if not one.visible]
    assert len({one.kind for one in drawn}) == 2 and all(set(one.constants) <= {"rows", "columns"} for one in drawn)
    assert all(one.speedup is not None and one.baseline_seconds is not None for one in shapes.results)


async def test_one_that_refuses_other_shapes(evaluator: LocalEvaluator, affine: Problem, tmp_path: Path) -> None:
    source = forward(ONLY_ITS_OWN.format(instead="raise ValueError('16 x 24 only')"))
    verdict, shapes = await judged(evaluator, affine, source, tmp_path)
    assert verdict.status in CORRECT and verdict.failure is None  # KernelBench's contract is one shape
    assert shapes.right == 0 and len(shapes.failed) == 4
    kinds = {one.failure.kind for one in shapes.failed if one.failure is not None}
    assert kinds == {FailureKind.RUNTIME_ERROR}
    assert all(one.speedup is None for one in shapes.failed)


async def test_what_dies_at_a_shape_hides_none_after_it(
    evaluator: LocalEvaluator, affine: Problem, tmp_path: Path
) -> None:
    """Each shape has a process that was not there when another one died."""
    source = "import os\n" + forward(ONLY_ITS_OWN.format(instead="os.abort() if x.shape[0] < 16 else None"))
    verdict, shapes = await judged(evaluator, affine, source, tmp_path)
    assert verdict.status in CORRECT and len(shapes.results) == 4
    for one in shapes.results:
        dies = one.constants.get("rows", 16) < 16
        assert (one.failure is not None and one.failure.kind is FailureKind.CRASH) == dies, one


async def test_what_is_kept_of_the_main_shape_is_no_answer(
    evaluator: LocalEvaluator, affine: Problem, tmp_path: Path
) -> None:
    """A result that is cut from what an earlier call left."""
    source = "KEPT = []\n" + forward(
        "if x.shape == (16, 24):\n    KEPT[:] = [2.0 * x + 1.0]\n    return KEPT[0].clone()\n"
        "return KEPT[0].flatten().repeat(-(-x.numel() // 384))[:x.numel()].view(x.shape)"
    )
    verdict, shapes = await judged(evaluator, affine, source, tmp_path)
    assert verdict.status in CORRECT and shapes.right == 0
    assert {one.failure.kind for one in shapes.failed if one.failure is not None} == {FailureKind.WRONG_VALUES}


async def test_constants_that_are_not_there_cannot_change(evaluator: LocalEvaluator, tmp_path: Path) -> None:
    linear = problem_file(tmp_path / "problems", LINEAR)
    source = "class ModelNew(nn.Module):\n    def __init__(self, width, out):\n        super().__init__()\n"
    source += "        self.linear = nn.Linear(width, out)\n    def forward(self, x):\n        return self.linear(x)\n"
    verdict, shapes = await judged(evaluator, linear, source, tmp_path)
    assert verdict.status in CORRECT and not shapes.results and len(shapes.not_checked) == 1


async def test_where_shapes_are_required_one_wrong_is_a_failure(
    demanding: LocalEvaluator, affine: Problem, tmp_path: Path
) -> None:
    source = forward(ONLY_ITS_OWN.format(instead="return x"))
    verdict, shapes = await judged(demanding, affine, source, tmp_path)
    assert verdict.status is Status.INCORRECT and verdict.failure is not None
    assert (verdict.failure.kind, verdict.failure.stage) == (FailureKind.SHAPES, Stage.SHAPES)
    assert shapes.required and shapes.described in verdict.failure.message
    assert all(one.kind in ShapeKind for one in shapes.failed) and verdict.speedup is None


async def test_where_shapes_are_required_who_is_right_passes(
    demanding: LocalEvaluator, affine: Problem, tmp_path: Path
) -> None:
    verdict, shapes = await judged(demanding, affine, forward("return 2.0 * x + 1.0"), tmp_path)
    assert verdict.status in CORRECT and shapes.right == len(shapes.results) == 2
