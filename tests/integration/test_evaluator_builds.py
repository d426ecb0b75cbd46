"""The real evaluator on candidates that call a compiler."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from support.processes import living
from support.small_problems import AFFINE, candidate_file, problem_file

from hkbench.engine.evaluator import LocalEvaluator
from hkbench.records import DeviceKind, EvaluationSettings, FailureKind, Stage, Status, Track, Verdict

pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None or shutil.which("ninja") is None, reason="no g++ or ninja"),
]

SETTINGS = EvaluationSettings(
    busy_wait=0.0,
    shapes=0,
    track=Track.ANY,
    trials=2,
    timing_runs=5,
    warmups=1,
    build_timeout=120.0,
    load_timeout=20.0,
    run_timeout=5.0,
)

#: Lean headers: pybind11 alone takes seconds, torch's own half a minute.
CANDIDATE = """
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
#include <cstdint>
#include <pybind11/pybind11.h>
BEFORE
void affine(uintptr_t x_at, uintptr_t out_at, int64_t count) {
    const float* x = reinterpret_cast<const float*>(x_at);
    float* out = reinterpret_cast<float*>(out_at);
    for (int64_t i = 0; i < count; ++i) out[i] = EXPRESSION;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("affine", &affine); }
'''
extension = load_inline(name="affine", cpp_sources=SOURCE, no_implicit_headers=True, extra_cflags=["-O1"])

class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        extension.affine(x.data_ptr(), out.data_ptr(), x.numel())
        return out
"""

#: As good as endless work for the compiler: a tree of 2^60 types.
ENDLESS = """
template <int N, unsigned long long P> struct Tree {
    static constexpr unsigned long long value = Tree<N - 1, 2 * P>::value + Tree<N - 1, 2 * P + 1>::value;
};
template <unsigned long long P> struct Tree<0, P> { static constexpr unsigned long long value = 1; };
constexpr unsigned long long leaves = Tree<60, 1>::value;
"""


def source(expression: str = "2.0f * x[i] + 1.0f", before: str = "") -> str:
    return CANDIDATE.replace("EXPRESSION", expression).replace("BEFORE", before.strip("\n"))


async def judge(folder: Path, candidate: str, settings: EvaluationSettings = SETTINGS) -> Verdict:
    problem = problem_file(folder / "problems", AFFINE)
    code = candidate_file(folder, candidate)
    before = set(living())
    stages: list[Stage] = []
    async with LocalEvaluator(DeviceKind.CPU, settings) as evaluator:
        told = lambda stage, _device: stages.append(stage)  # noqa: E731
        result = await evaluator.evaluate(problem, code, folder / "build", "cpp", told)
        compilers = {"cc1plus", "g++", "ninja", "as", "ld"}
        assert not compilers & set(living().values())
    assert not (folder / "build").exists()
    for _ in range(100):
        if set(living()) <= before:
            break
        await asyncio.sleep(0.05)
    assert set(living()) <= before
    assert Stage.BUILD in stages
    assert result.verdict is not None
    return result.verdict


async def test_a_candidate_is_built_and_measured(tmp_path: Path) -> None:
    verdict = await judge(tmp_path, source())
    assert verdict.failure is None
    assert verdict.status in (Status.FAST, Status.SLOW)
    assert [entry.stage for entry in verdict.stages] == [Stage.PARSE, Stage.BUILD, Stage.LOAD, Stage.RUN, Stage.TIME]


async def test_a_compile_error_names_the_candidate_s_line(tmp_path: Path) -> None:
    verdict = await judge(tmp_path, source("2.0f * x[i] + offset_that_is_missing"))
    assert verdict.failure is not None
    assert (verdict.failure.stage, verdict.failure.kind) == (Stage.BUILD, FailureKind.BUILD_ERROR)
    assert verdict.failure.message.startswith("main.cpp:")
    assert "error: " in verdict.failure.message and "offset_that_is_missing" in verdict.failure.message
    assert verdict.failure.detail is not None
    assert "out[i] = 2.0f * x[i] + offset_that_is_missing;" in verdict.failure.detail


async def test_a_build_without_end_is_killed(tmp_path: Path) -> None:
    short = SETTINGS.model_copy(update={"build_timeout": 3.0})
    verdict = await judge(tmp_path, source(before=ENDLESS), short)
    assert verdict.failure is not None
    assert (verdict.failure.stage, verdict.failure.kind) == (Stage.BUILD, FailureKind.BUILD_TIMEOUT)
    assert "3 s" in verdict.failure.message
