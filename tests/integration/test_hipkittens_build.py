"""Real builds for backend hipkittens without an AMD GPU.

Most use a small tree that is made up here. The prompts' other examples are built in tests/unit/prompts.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest
from support.compilers import hip_or_skip
from support.kittens import kittens_or_skip
from support.small_problems import AFFINE, problem_file

from hkbench.cli.verdicts import describe
from hkbench.engine.build_only import compile_only
from hkbench.errors import ToolchainUnavailable
from hkbench.records import Backend, FailureKind, JudgeSettings, KernelLanguage, Status, Verdict
from hkbench.toolchain.hip import HipToolchain
from hkbench.toolchain.hipkittens import VARIABLES, Checkout, Dialect, read_checkout

pytestmark = [pytest.mark.hipcc, pytest.mark.slow]

PROMPTS = Path(__file__).resolve().parents[2] / "prompts"
SETTINGS = JudgeSettings(build_timeout=400)
_BLOCK = re.compile(r"```(?:python|cpp)\n(.*?)```", re.DOTALL)

#: As small as a tree can be that is laid out like HipKittens' CDNA4 branch: vectors of floats, held by one lane.
KITTENS = """
#pragma once
#ifndef KITTENS_CDNA4
#error this tree wants KITTENS_CDNA4
#endif
#include <hip/hip_runtime.h>
#include <hip_bf16.h>
namespace kittens {
template <int N> struct rv_fl { float data[N]; };
template <int N> __device__ void load(rv_fl<N> &v, const float *x) { for (int i = 0; i < N; ++i) v.data[i] = x[i]; }
template <int N> __device__ void store(float *x, const rv_fl<N> &v) { for (int i = 0; i < N; ++i) x[i] = v.data[i]; }
}
"""
CANDIDATE = '''
import os
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

HIP = r"""
#include "kittens.cuh"
__global__ __launch_bounds__(1024) void turn(float *x, const int *from) {
  BODY
}
void launch(float *x, const int *from) { turn<<<1, 1024>>>(x, from); }
"""
BINDING = """
#include <pybind11/pybind11.h>
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}
"""
extension = load_inline(
    name="turn", cpp_sources=BINDING, cuda_sources=HIP, no_implicit_headers=True,
    extra_cuda_cflags=[
        "-DDIALECT", f"-I{os.environ['THUNDERKITTENS_ROOT']}/include", f"-I{os.environ['ROCM_PATH']}/include/hip",
        "-U__HIP_NO_HALF_OPERATORS__", "-U__HIP_NO_HALF_CONVERSIONS__", "-Wno-invalid-constexpr",
    ],
)

class ModelNew(nn.Module):
    pass
'''
#: Places that only run time knows, in an array that is too large for registers: it has to be in scratch.
SPILLING = """
  kittens::rv_fl<512> v;
  kittens::load(v, x);
  for (int i = 0; i < 64; ++i) v.data[from[i]] += 1;
  kittens::store(x, v);
"""
TURNING = "kittens::rv_fl<4> v; kittens::load(v, x); kittens::store(x + 4, v);"


@pytest.fixture(scope="module")
def toolchain() -> HipToolchain:
    return hip_or_skip("no HipKittens build was tested")


@pytest.fixture
def small_tree(tmp_path: Path, toolchain: HipToolchain, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The made-up tree, named by HIPKITTENS_ROOT alone: the candidate reads the other variable."""
    root = tmp_path / "kittens"
    (root / "include" / "types" / "register").mkdir(parents=True)
    (root / "include" / "types" / "register" / "rt_shape.cuh").touch()
    (root / "include" / "kittens.cuh").write_text(KITTENS)
    monkeypatch.delenv("THUNDERKITTENS_ROOT", raising=False)
    monkeypatch.setenv("HIPKITTENS_ROOT", str(root))
    return root


@pytest.fixture(params=Dialect)
def checkout(
    request: pytest.FixtureRequest, toolchain: HipToolchain, monkeypatch: pytest.MonkeyPatch
) -> tuple[Checkout, Dialect]:
    dialect: Dialect = request.param
    root = kittens_or_skip(dialect, "nothing was compiled with HipKittens itself")
    for name in VARIABLES:
        monkeypatch.setenv(name, str(root))
    return read_checkout(root), dialect


def _compiled(folder: Path, source: str, arch: str) -> Verdict:
    code = folder / "candidate.py"
    code.write_text(source)
    problem = problem_file(folder / "problem", AFFINE)
    return asyncio.run(compile_only(problem, code, folder / "scratch", Backend.HIPKITTENS, arch, SETTINGS))


def _candidate(body: str, define: str = "KITTENS_CDNA4") -> str:
    return CANDIDATE.replace("BODY", body).replace("DIALECT", define)


def test_a_candidate_compiles_and_is_called_hipkittens(small_tree: Path, tmp_path: Path) -> None:
    before = dict(os.environ)
    verdict = _compiled(tmp_path, _candidate(TURNING), "gfx950")
    assert (verdict.status, verdict.failure) == (Status.COMPILED, None)
    conditions = verdict.conditions
    assert (conditions.backend, conditions.arch, conditions.warnings) == (Backend.HIPKITTENS, "gfx950", ())
    assert conditions.versions["hipkittens"] == "cdna4@unknown"
    assert conditions.versions["hipkittens_include"].startswith("sha256:")
    assert verdict.language == KernelLanguage(
        backend=Backend.HIPKITTENS, reason="turn uses load, store", kernels=("turn",), ran=False
    )
    assert "kernels in the source, not seen running: hipkittens (turn uses load, store)" in describe(verdict)
    (kernel,) = verdict.resources
    assert kernel.scratch_bytes_per_lane == 0
    assert dict(os.environ) == before


def test_a_spill_is_a_warning(small_tree: Path, tmp_path: Path) -> None:
    verdict = _compiled(tmp_path, _candidate(SPILLING), "gfx950")
    assert verdict.status is Status.COMPILED
    (kernel,) = verdict.resources
    assert (kernel.scratch_bytes_per_lane or 0) >= 512 * 4
    (warning,) = verdict.conditions.warnings
    assert warning.startswith("turn spills: ")
    assert f"{kernel.scratch_bytes_per_lane} bytes of scratch" in warning


def test_plain_hip_behind_the_header_is_said(small_tree: Path, tmp_path: Path) -> None:
    verdict = _compiled(tmp_path, _candidate("x[threadIdx.x] = 1;"), "gfx950")
    assert verdict.status is Status.COMPILED
    reason = "kittens.cuh is included, but no operation of it is called in turn"
    assert verdict.language == KernelLanguage(backend=Backend.HIP, reason=reason, ran=False)
    assert verdict.conditions.warnings == (f"not HipKittens but plain HIP: {reason}",)


def test_the_other_dialect_is_the_candidates_failure_and_named(small_tree: Path, tmp_path: Path) -> None:
    verdict = _compiled(tmp_path, _candidate(TURNING, "KITTENS_CDNA3"), "gfx950")
    assert verdict.failure is not None
    assert verdict.failure.kind is FailureKind.BUILD_ERROR
    assert "this tree wants KITTENS_CDNA4" in verdict.failure.message
    assert verdict.conditions.warnings == ("turn: written for cdna3, compiled for cdna4 (gfx950)",)


def test_a_tree_without_the_dialect_judges_nobody(small_tree: Path, tmp_path: Path) -> None:
    with pytest.raises(ToolchainUnavailable, match="gfx942 needs cdna3: set HIPKITTENS_ROOT"):
        _compiled(tmp_path, _candidate(TURNING), "gfx942")


def test_a_tree_that_does_not_compile_judges_nobody(small_tree: Path, tmp_path: Path) -> None:
    (small_tree / "include" / "kittens.cuh").write_text("#include <hip/hip_of_the_future.h>\n")
    with pytest.raises(ToolchainUnavailable, match=r"headers do not compile .*hip_of_the_future\.h"):
        _compiled(tmp_path, _candidate(TURNING), "gfx950")


def test_the_attention_source_compiles_as_its_prompt_binds_it(
    checkout: tuple[Checkout, Dialect], tmp_path: Path
) -> None:
    found, dialect = checkout
    text = (PROMPTS / f"_hipkittens_example_attention_{dialect}.txt").read_text()
    (source,) = _BLOCK.findall(text)
    (call,) = re.findall(r"`(build\(.*?\))`", text)
    head = "from hipkittens_build import build\nimport torch.nn as nn\n"
    candidate = f'{head}HIP = r"""{source}"""\n{call}\nclass ModelNew(nn.Module):\n    pass\n'
    verdict = _compiled(tmp_path, candidate, dialect.arch)
    assert (verdict.status, verdict.failure, verdict.conditions.warnings) == (Status.COMPILED, None, ())
    assert verdict.conditions.versions["hipkittens"] == found.versions(dialect)["hipkittens"]
    (kernel,) = verdict.resources
    assert (kernel.vgpr_spills, kernel.scratch_bytes_per_lane) == (0, 0)
