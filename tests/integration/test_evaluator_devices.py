"""Two devices side by side, with real judges: the CPU is lent twice, as if it were two."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest
from support.processes import left_behind
from support.small_problems import AFFINE, candidate_file, forward, problem_file

from hkbench.engine.completion import EvaluationResult
from hkbench.engine.evaluator import LocalEvaluator, OnStage
from hkbench.engine.slots import BuildSlots, HostShare
from hkbench.records import DeviceFacts, DeviceKind, EvaluationSettings, Stage, Track

pytestmark = pytest.mark.slow

HANGS = 300.0  #: seconds, longer than the others take on any machine; what hangs is given up before
SETTINGS = EvaluationSettings(
    busy_wait=0.0, shapes=0,
    track=Track.ANY, trials=2, timing_runs=3, timing_seconds=5.0, warmups=1, run_timeout=HANGS,
    memory_gib=1.5, profile_slow=False,
)  # fmt: skip


class Twice(LocalEvaluator):
    """Measurements do not exclude builds or each other, as on two GPUs."""

    async def _describe(self) -> tuple[DeviceFacts, ...]:
        (facts,) = await super()._describe()
        return facts, facts

    def _share(self) -> None:
        super()._share()
        self._slots = BuildSlots(2, HostShare.NONE)


async def test_while_one_hangs_the_others_are_measured(tmp_path: Path) -> None:
    problem = problem_file(tmp_path / "problems", AFFINE)
    sources = {"hung": forward("while True: pass")}
    sources |= {f"right{number}": forward("return 2.0 * x + 1.0") for number in range(3)}
    held: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def told(stage: Stage, device: int | None) -> None:
        if stage is Stage.RUN and device is not None and not held.done():
            held.set_result(device)

    async def judge(
        evaluator: LocalEvaluator, name: str, on_stage: OnStage = lambda _stage, _device: None
    ) -> EvaluationResult:
        folder = tmp_path / name
        code = candidate_file(folder, sources[name])
        return await evaluator.evaluate(problem, code, folder / "build", "cpp", on_stage=on_stage)

    async with Twice(DeviceKind.CPU, SETTINGS) as evaluator:
        hung = asyncio.create_task(judge(evaluator, "hung", told))
        await asyncio.wait_for(asyncio.shield(held), HANGS)
        found = await asyncio.gather(*(judge(evaluator, name) for name in sources if name != "hung"))
        assert not hung.done()
        hung.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hung
    for one in found:
        assert one.verdict is not None and one.verdict.failure is None, one.verdict
    turns = sorted((one.turns.lent or 0.0, one.turns.returned or 0.0) for one in found if one.turns is not None)
    assert len(turns) == 3
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(turns)), "on the second device, in turn"
    assert left_behind() == {}
