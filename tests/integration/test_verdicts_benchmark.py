"""hkbench's side of benchmarks/verdicts.py on a CPU, where the other side cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import doors

from benchmarks.verdicts_sides import Ours, TakingTurns, Task, eval_process, settings
from hkbench.problems import load_problem
from hkbench.records import DeviceKind, SizeSet

pytestmark = pytest.mark.alone

RUNS = 30
BROKEN = "class ModelNew(torch.nn.Module):\n    raise ValueError('on purpose')\n"


def task(folder: Path, name: str, body: str) -> Task:
    problem = doors.problem(folder, name, 1)
    code = folder / f"{name}_code.py"
    code.write_text(doors.CANDIDATE.format(body=body))
    return Task(load_problem(problem), code, 0)


@pytest.mark.slow
async def test_a_candidate_waits_loaded_and_the_wait_does_not_count(tmp_path: Path) -> None:
    right = task(tmp_path, "1_Right", "return x * 2 + 1")
    broken = task(tmp_path, "2_Broken", "return x")
    broken.code.write_text(f"import torch\n{BROKEN}")
    async with TakingTurns(DeviceKind.CPU, settings(RUNS), SizeSet.FULL, 4) as evaluator:
        ours = Ours(evaluator, tmp_path / "scratch", RUNS)
        ours.start(broken)
        assert not await ours.built(broken)
        assert (await ours.evaluate(broken)).reason.startswith("load_error")
        ours.start(right)
        assert await ours.built(right)
        figure = await ours.evaluate(right)
        cold = await ours.evaluate_cold(task(tmp_path, "3_Cold", "return x * 2 + 1"))
        ours.start(left := task(tmp_path, "4_Left", "return x * 2 + 1"))
        assert await ours.built(left)
        await ours.close()
    assert figure.complete and not figure.cold and figure.counted(cold=False) == figure.seconds
    assert 0.5 * figure.seconds < sum(figure.stages.values()) <= figure.seconds
    assert cold.complete and cold.cold and cold.counted(cold=True) == cold.seconds
    assert not (tmp_path / "scratch" / "4_Left_0").exists()


@pytest.mark.slow
async def test_eval_as_a_process(tmp_path: Path) -> None:
    right = task(tmp_path, "1_Right", "return x * 2 + 1")
    figure = await eval_process(right, DeviceKind.CPU, tmp_path, cold=False, limit=None, runs=RUNS)
    assert figure.complete and figure.process and figure.speedup is not None and figure.speedup > 1.0
    late = await eval_process(right, DeviceKind.CPU, tmp_path, cold=False, limit=0.5, runs=RUNS)
    assert not late.complete and "time limit" in late.reason
