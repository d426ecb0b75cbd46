"""A verdict beside other work on the processors, which has to say so."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.small_problems import candidate_file, forward, problem_file

from hkbench.engine.evaluator import LocalEvaluator
from hkbench.records import DeviceKind, EvaluationSettings, Track, Verdict

pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel does not count waits"),
]

SETTINGS = EvaluationSettings(
    track=Track.ANY, trials=1, timing_runs=10, timing_seconds=5.0, warmups=1, busy_wait=0.0, shapes=0
)
#: Long enough that the scheduler takes its processor away.
PROBLEM = """
    import torch
    import torch.nn as nn

    class Model(nn.Module):
        def forward(self, x):
            return torch.tanh(x) + 1.0

    def get_inputs():
        return [torch.randn(2000, 1000)]

    def get_init_inputs():
        return []
"""


@pytest.fixture
def busy() -> Iterator[None]:
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    yield
    for other in others:
        other.kill()
        other.wait()


@pytest.mark.usefixtures("busy")
def test_a_verdict_beside_other_work_is_unsettled(tmp_path: Path) -> None:
    problem, code = (
        problem_file(tmp_path / "problems", PROBLEM),
        candidate_file(tmp_path, forward("return torch.tanh(x) + 1.0")),
    )

    async def judged() -> Verdict:
        async with LocalEvaluator(DeviceKind.CPU, SETTINGS) as evaluator:
            result = await evaluator.evaluate(problem, code, tmp_path / "build", "cpp")
        assert result.verdict is not None
        return result.verdict

    verdict = asyncio.run(judged())
    assert verdict.speedup is not None, verdict.failure
    assert verdict.contention is not None and verdict.contention.reasons, verdict.contention
    assert verdict.unsettled and any("unsettled" in warning for warning in verdict.conditions.warnings)
    assert verdict.contention.measurements == 1, "nobody asked to wait"
    assert Verdict.model_validate_json(verdict.model_dump_json()).unsettled
