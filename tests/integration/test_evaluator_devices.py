"""Two devices side by side, with real judges: the CPU is lent twice, as if it were two."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.processes import living
from support.small_problems import AFFINE, candidate_file, forward, problem_file

from hkbench.engine.evaluator import Evaluated, Evaluator
from hkbench.engine.slots import BuildSlots
from hkbench.records import Backend, DeviceFacts, DeviceKind, FailureKind, JudgeSettings, Problem, Track

pytestmark = pytest.mark.slow

HUNG_SECONDS = 16.0
SETTINGS = JudgeSettings(
    track=Track.ANY, trials=2, timing_runs=3, timing_seconds=5.0, warmups=1, run_timeout=HUNG_SECONDS,
    memory_gib=1.5, profile_slow=False,
)  # fmt: skip


class Twice(Evaluator):
    """Measurements do not exclude builds or each other, as on two GPUs."""

    async def _describe(self) -> tuple[DeviceFacts, ...]:
        (facts,) = await super()._describe()
        return facts, facts

    def _share(self) -> None:
        super()._share()
        self._slots = BuildSlots(2, exclusive_measurement=False)


async def test_while_one_hangs_the_others_are_measured(tmp_path: Path) -> None:
    problem = problem_file(tmp_path / "problems", AFFINE)
    sources = {"hung": forward("while True: pass")}
    sources |= {f"right{number}": forward("return 2.0 * x + 1.0") for number in range(3)}

    async def judge(evaluator: Evaluator, problem: Problem, name: str) -> Evaluated:
        folder = tmp_path / name
        return await evaluator.evaluate(problem, candidate_file(folder, sources[name]), folder / "build", Backend.CPP)

    async with Twice(DeviceKind.CPU, SETTINGS) as evaluator:
        hung, *right = await asyncio.gather(*(judge(evaluator, problem, name) for name in sources))
    assert hung.verdict is not None and hung.verdict.failure is not None and hung.turns is not None
    assert hung.verdict.failure.kind is FailureKind.TIMEOUT
    lent, returned = hung.turns.lent or 0.0, hung.turns.returned or 0.0
    assert returned - lent >= HUNG_SECONDS
    meanwhile = 0
    for one in right:
        assert one.verdict is not None and one.verdict.failure is None and one.turns is not None
        meanwhile += (one.turns.lent or 0.0) < returned and lent < (one.turns.returned or 0.0)
    assert meanwhile >= 2  # one after the other on the second device, so that at least one ended and one began
    assert living() == {}
