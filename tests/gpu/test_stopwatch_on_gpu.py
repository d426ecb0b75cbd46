"""The evaluator's clock on a GPU, by whole evaluations: `pytest -m gpu`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from hkbench.device_kinds.cuda import CUDA
from hkbench.engine.evaluator import LocalEvaluator
from hkbench.problems import load_problem
from hkbench.records import DeviceKind, EvaluationSettings, Track, Verdict

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU on this machine"),
]

PROBLEM = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        torch.cuda._sleep({cycles})
        return x + 1.0


def get_inputs():
    return [torch.randn(1 << 20)]


def get_init_inputs():
    return []
"""
#: Leaves a stream that waits until the inputs are cleared and then until there are new ones, and keeps the device busy.
SLOWING = """
import ctypes
import torch

driver = ctypes.CDLL("libcuda.so.1" if torch.version.hip is None else "libamdhip64.so")
EQUAL, NEITHER = 1, 3


def wait(stream, address, value, how):
    arguments = ctypes.c_void_p(stream), ctypes.c_void_p(address), ctypes.c_uint32(value), ctypes.c_uint(how)
    if torch.version.hip is None:
        assert driver.cuStreamWaitValue32_v2(*arguments) == 0
    else:
        assert driver.hipStreamWaitValue32(*arguments, ctypes.c_uint32(0xFFFFFFFF)) == 0


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, x):
        torch.cuda._sleep({cycles})
        result = x + 1.0
        if {slowing}:
            self.side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.side):
                wait(self.side.cuda_stream, x.data_ptr(), 0xFFFFFFFF, EQUAL)
                wait(self.side.cuda_stream, x.data_ptr(), 0, NEITHER)
                torch.cuda._sleep({cycles})
        return result
"""


async def judged(folder: Path, code: str, cycles: int) -> Verdict:
    problem, candidate = folder / "1_sleeping.py", folder / "code.py"
    problem.write_text(PROBLEM.format(cycles=cycles))
    candidate.write_text(code)
    kind = DeviceKind.ROCM if torch.version.hip else DeviceKind.CUDA
    settings = EvaluationSettings(track=Track.ANY, shapes=0, trials=2, profile_slow=False)
    async with LocalEvaluator(kind, settings) as evaluator:
        found = await evaluator.evaluate(load_problem(problem), candidate, folder / "build", "cuda")
    assert found.verdict is not None
    return found.verdict


async def test_a_time_is_what_the_device_was_busy_for(tmp_path: Path) -> None:
    seconds = {}
    for cycles in (20_000, 200_000):
        verdict = await judged(tmp_path, SLOWING.format(cycles=cycles, slowing=False), cycles)
        assert verdict.failure is None and verdict.candidate is not None and verdict.clocks is not None
        assert verdict.candidate.clock == CUDA.evaluators_clock
        assert verdict.clocks.trace is not None
        seconds[cycles] = verdict.candidate.median.value, verdict.clocks.trace
    (less, less_traced), (more, more_traced) = seconds[20_000], seconds[200_000]
    assert more - less == pytest.approx(more_traced - less_traced, rel=0.1)


async def test_work_that_is_left_queued_slows_nobody_else_down(tmp_path: Path) -> None:
    cycles = 200_000
    verdict = await judged(tmp_path, SLOWING.format(cycles=cycles, slowing=True), cycles)
    assert verdict.failure is not None or (verdict.speedup is not None and verdict.speedup.low <= 1.0), verdict
