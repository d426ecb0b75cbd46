"""Why a candidate is evaluated once more, with verdicts that are known."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.jobs import evaluate_job
from support.run_folder import correct, incorrect

from hkbench.engine.completion import EvaluationResult
from hkbench.engine.reevaluation import evaluate_until_settled
from hkbench.errors import DeviceMemoryLacking
from hkbench.evaluation.job import EvaluateJob
from hkbench.records import (
    FailureKind,
    Reach,
    Stage,
    Verdict,
)

NO_KERNEL = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
FULL = incorrect("1_A", FailureKind.OUT_OF_MEMORY, Stage.RUN, "no room")
MISSES = incorrect("1_A", FailureKind.RUNTIME_ERROR, Stage.RUN, NO_KERNEL)
RIGHT = correct("1_A", 2.0)


class Evaluator:
    """Gives one answer after the other, and notes what it was asked for."""

    def __init__(self, *answers: Verdict | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[Reach, bool, str | None]] = []

    async def once(self, job: EvaluateJob) -> EvaluationResult:
        missed = None if job.missed is None else job.missed.message
        self.asked.append((job.reach, job.alone, missed))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return EvaluationResult(answer)

    async def judge(self, folder: Path, beside: bool) -> Verdict | None:
        code = folder / "code.py"
        code.write_text("# a kernel")
        job = evaluate_job(code=str(code))
        return (await evaluate_until_settled(job, code, self.once, with_reach, beside)).verdict


async def with_reach(job: EvaluateJob, wanted: Reach) -> EvaluateJob:
    return job.model_copy(update={"reach": wanted})


async def test_who_does_not_fail_is_judged_once(tmp_path: Path) -> None:
    evaluator = Evaluator(RIGHT)
    assert await evaluator.judge(tmp_path, beside=True) is RIGHT
    assert evaluator.asked == [(Reach.OWN, False, None)]


@pytest.mark.parametrize("first", [FULL, DeviceMemoryLacking("no room")])
async def test_who_lacks_memory_beside_others_has_the_device_to_itself(
    tmp_path: Path, first: Verdict | Exception
) -> None:
    evaluator = Evaluator(first, RIGHT)
    assert await evaluator.judge(tmp_path, beside=True) is RIGHT
    assert [alone for _, alone, _ in evaluator.asked] == [False, True]


async def test_who_lacks_memory_alone_has_failed(tmp_path: Path) -> None:
    assert await Evaluator(FULL).judge(tmp_path, beside=False) is FULL
    with pytest.raises(DeviceMemoryLacking):
        await Evaluator(DeviceMemoryLacking("no room")).judge(tmp_path, beside=False)


async def test_who_misses_code_is_judged_with_more_of_it(tmp_path: Path) -> None:
    evaluator = Evaluator(MISSES, MISSES, RIGHT)
    assert await evaluator.judge(tmp_path, beside=True) is RIGHT
    assert [(reach, missed) for reach, _, missed in evaluator.asked] == [
        (Reach.OWN, None),
        (Reach.SIMPLE, NO_KERNEL),
        (Reach.ALL, NO_KERNEL),
    ]
