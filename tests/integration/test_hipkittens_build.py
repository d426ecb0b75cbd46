"""Real builds for backend hipkittens without an AMD GPU.

Most use a small tree that is made up here. The prompts' other examples are built in tests/unit/prompts.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest
from support.compilers import empty_module, hip_or_skip
from support.kittens import kittens_or_skip
from support.small_problems import AFFINE, problem_file

from hkbench.cli.verdicts import describe
from hkbench.compile_only.build_only import compile_only
from hkbench.errors import ToolchainUnavailable
from hkbench.records import EvaluationSettings, FailureKind, KernelLanguage, Status, Verdict
from hkbench.toolchain.hip import HipToolchain
from hkbench.toolchain.hipkittens import VARIABLES, WITH_CARD, Checkout, Dialect, read_checkout

pytestmark = [pytest.mark.hipcc, pytest.mark.slow]

PROMPTS = Path(__file__).resolve().parents[2] / "prompts"
SETTINGS = EvaluationSettings(build_timeout=400, shapes=0)
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
EMPTY_MODULE"""
extension = load_inline(
    name="turn", cpp_sources=BINDING, cuda_sources=HIP, no_implicit_headers=True,
    extra_cuda_cflags=[
        "-DDIALECT", f"-I{os.environ['THUNDERKITTENS_ROOT']}/include", f"-I{os.environ['ROCM_PATH']}/include/hip",
        "-U__HIP_NO_HALF_OPERATORS__", "-U__HIP_NO_HALF_CONVERSIONS__", "-Wno-invalid-constexpr",
    ],
)

class ModelNew(nn.Module):
    pass
'''.replace("EMPTY_MODULE", empty_module("turn"))
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


@pytest.fixture(params=WITH_CARD)
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
    return asyncio.run(compile_only(problem, code, folder / "scratch", "hipkittens", arch, SETTINGS))


def _candidate(body: str, define: str = "KITTENS_CDNA4") -> str:
    return CANDIDATE.replace("BODY", body).replace("DIALECT", define)


def test_a_candidate_compiles_and_is_called_hipkittens(small_tree: Path, tmp_path: Path) -> None:
    before = dict(os.environ)
    verdict = _compiled(tmp_path, _candidate(TURNING), "gfx950")
    assert (verdict.status, verdict.failure) == (Status.COMPILED, None)
    conditions = verdict.conditions
    assert (conditions.backend, conditions.arch, conditions.warnings) == ("hipkittens", "gfx950", ())
    assert conditions.versions["hipkittens"] == "cdna4@unknown"
    assert conditions.versions["hipkittens_include"].startswith("sha256:")
    assert verdict.language == KernelLanguage(
        backend="hipkittens", reason="turn uses load, store", kernels=("turn",), ran=False
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
    assert verdict.language == KernelLanguage(backend="hip", reason=reason, ran=False)
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


#: Sums of two vectors, and what is told of a candidate whose tile is loaded by the form of G::load that sets M0 itself.
ADDS = '''
from hipkittens_build import build
import torch.nn as nn

HIP = r"""
#include "kittens.cuh"
using namespace kittens;
#ifdef KITTENS_CDNA5
using vector = rv_naive<float, 256>;
#else
using vector = rv_fl<256>;
#endif
struct globals { gl<float, -1, -1, -1, -1> x, y, out; };
__global__ __launch_bounds__(WARP_THREADS) void sums(const globals g) {
  vector a, b;
  load(a, g.x, {0, 0, (int)blockIdx.x, 0});
  load(b, g.y, {0, 0, (int)blockIdx.x, 0});
  add(a, a, b);
  store(g.out, a, {0, 0, (int)blockIdx.x, 0});
}
void dispatch(const globals &g, hipStream_t stream) { sums<<<g.x.rows(), WARP_THREADS, 0, stream>>>(g); }
"""
build("sums", HIP, {"dispatch": ["x", "y", "out"]})

class ModelNew(nn.Module):
    pass
'''


@pytest.mark.parametrize("dialect", [one for one in Dialect if one not in WITH_CARD])
def test_dialects_without_a_card_compile(
    dialect: Dialect, toolchain: HipToolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = kittens_or_skip(dialect, "nothing was compiled for it")
    for name in VARIABLES:
        monkeypatch.setenv(name, str(root))
    verdict = _compiled(tmp_path, ADDS, dialect.arch)
    assert (verdict.status, verdict.failure, verdict.conditions.warnings) == (Status.COMPILED, None, ())
    assert verdict.language is not None and verdict.language.backend == "hipkittens"
    (kernel,) = verdict.resources
    assert (kernel.arch, kernel.scratch_bytes_per_lane, kernel.limited_by) == (dialect.arch, 0, None)


LOADS = '''
from hipkittens_build import build
import torch.nn as nn

HIP = r"""
#include "kittens.cuh"
using namespace kittens;
using G = group<4>;
using ST = st_bf<128, 64, st_16x32_s>;
struct globals { gl<bf16, -1, -1, -1, -1> a, c; };
__global__ __launch_bounds__(256, 2) void loads(const globals g) {
  extern __shared__ alignment_dummy __shm[];
  shared_allocator al((int*)&__shm[0]);
  ST &tile = al.allocate<ST>();
  uint32_t offsets[ST::rows * ST::cols * 2 / (16 * 256)];
  G::prefill_swizzled_offsets(tile, g.a, offsets);
  const bf16 *base = &g.a[{0, 0, 0, 0}];
  const auto srsrc = make_srsrc(base, g.a.rows() * g.a.cols() * sizeof(bf16));
  const auto lds = __builtin_amdgcn_readfirstlane((uint32_t)(uintptr_t)&tile.data[0] + warpid() * 1024);
  (void)base, (void)srsrc, (void)lds;
  G::load(tile, g.a, {0, 0, (int)blockIdx.x, 0}, ARGUMENTS);
  asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
  __builtin_amdgcn_s_barrier();
  rt_bf<32, 64, row_l, rt_16x32_s> a;
  load(a, subtile_inplace<32, 64>(tile, {warpid(), 0}));
  asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory");
  __builtin_amdgcn_sched_barrier(0);
  store(g.c, a, {0, 0, (int)blockIdx.x * 4 + warpid(), 0});
}
void dispatch(const globals &g, hipStream_t stream) { loads<<<1, 256, sizeof(ST), stream>>>(g); }
"""
build("loads", HIP, {"dispatch": ["a", "c"]})

class ModelNew(nn.Module):
    pass
'''


@pytest.mark.parametrize(("arguments", "lost"), [("offsets", 0), ("offsets, srsrc, base, lds", 1)])
def test_a_load_that_the_compiler_sends_nowhere_is_a_warning(
    arguments: str, lost: int, toolchain: HipToolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The form with a buffer resource sets M0 in inline assembly, and clang 22 sets it again before the first load."""
    if "clang version 22" not in toolchain.compiler:
        pytest.skip(f"{toolchain.compiler} may do otherwise")
    root = kittens_or_skip(Dialect.CDNA4, "no load was compiled")
    for name in VARIABLES:
        monkeypatch.setenv(name, str(root))
    verdict = _compiled(tmp_path, LOADS.replace("ARGUMENTS", arguments), "gfx950")
    assert verdict.status is Status.COMPILED
    (kernel,) = verdict.resources
    counts = kernel.instructions or {}
    assert (counts.get("buffer_load_lds_lost_b128", 0), counts["buffer_load_lds_b128"]) == (lost, 4 - lost)
    assert [warning for warning in verdict.conditions.warnings if "null pointer" in warning] == (
        [warning for warning in verdict.conditions.warnings if warning.startswith("loads: ")] if lost else []
    )
    assert bool(verdict.conditions.warnings) == bool(lost)
