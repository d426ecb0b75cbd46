"""What a measured candidate's build left, read from real libraries in a private folder as a runner leaves it.

A verdict on an AMD GPU cannot be reached here; its libraries can be built, and a verdict of this machine is given in
its place.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from support.compilers import hip_or_skip
from support.run_folder import correct, incorrect

from hkbench.engine.assembly import assembly_of
from hkbench.engine.built_code import with_built_code
from hkbench.engine.confinement import Cages, survey
from hkbench.records import BackendName, Verdict
from hkbench.toolchain.build_hip import BuildResult, build_hip
from hkbench.toolchain.extension import ExtensionCall
from hkbench.toolchain.hip import HipToolchain
from hkbench.toolchain.process import run_tool

pytestmark = [pytest.mark.hipcc, pytest.mark.slow]

SPILLING = """
#include <hip/hip_runtime.h>
namespace mine {
__global__ void __launch_bounds__(1024) crowded(float* y, const float* x, int n) {
  float v[200];
  for (int i = 0; i < 200; i++) v[i] = x[i * 1024 + threadIdx.x];
  for (int r = 0; r < n; r++) {
#pragma unroll
    for (int i = 0; i < 200; i++) v[i] = v[i] * v[(i * 7 + 3) % 200] + r;
  }
#pragma unroll
  for (int i = 0; i < 200; i++) y[i * 1024 + threadIdx.x] = v[i];
}
}
__global__ void __launch_bounds__(256) scale(float* x, float a) { x[threadIdx.x] *= a; }
typedef float tile __attribute__((ext_vector_type(16)));
typedef _Float16 half4 __attribute__((ext_vector_type(4)));
__global__ void __launch_bounds__(256, 2) in_agprs(float* y, const half4* x) {
  tile a = {};
  for (int i = 0; i < 64; i++) a = __builtin_amdgcn_mfma_f32_32x32x8f16(x[i], x[i + 1], a, 0, 0, 0);
  for (int j = 0; j < 16; j++) y[threadIdx.x * 16 + j] = a[j];
  asm volatile("v_accvgpr_write_b32 a5, 0" ::: "a5");
}
"""
HOST = '#include <Python.h>\nextern "C" PyObject* PyInit_ext() { return nullptr; }\n'


@pytest.fixture(scope="module")
def toolchain() -> HipToolchain:
    return hip_or_skip("no built library was read")


@pytest.fixture(scope="module")
def built(toolchain: HipToolchain, tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    call = ExtensionCall.model_validate(
        {"name": "ext", "no_implicit_headers": True, "cpp_sources": [HOST], "cuda_sources": [SPILLING]}
    )
    result = build_hip(call, "gfx942", tmp_path_factory.mktemp("build"), 300, toolchain)
    assert result.library is not None, result.error
    return result


@pytest.fixture(scope="module")
def cages() -> Cages:
    return Cages(asyncio.run(survey()))


@pytest.fixture
def private(tmp_path: Path, built: BuildResult) -> Path:
    """The private folder after torch's extension tools have built there."""
    folder = tmp_path / "candidate" / "torch_extensions" / "ext"
    folder.mkdir(parents=True)
    assert built.library is not None
    (folder / "ext.so").write_bytes(built.library.read_bytes())
    return tmp_path / "candidate"


def _verdict(backend: BackendName) -> Verdict:
    verdict = correct("1_ReLU", 2.0)
    return verdict.model_copy(update={"conditions": verdict.conditions.model_copy(update={"backend": backend})})


def _read(verdict: Verdict, private: Path, cages: Cages, arch: str = "gfx942") -> Verdict:
    scratch = private.with_name("device_code")
    found = asyncio.run(with_built_code(verdict, private, scratch, arch, cages))
    return Verdict.model_validate(found.model_dump())


def test_the_figures_are_the_compilers_own(private: Path, built: BuildResult, cages: Cages) -> None:
    verdict = _read(_verdict("hip"), private, cages)
    fields = (
        *("agprs", "sgprs", "lds_bytes", "scratch_bytes_per_lane", "vgpr_spills", "sgpr_spills", "instructions"),
        *("max_workgroup_size", "whole_workgroup_waves_per_simd", "limited_by", "findings"),
    )
    remarked = {kernel.name: kernel for kernel in built.resources}
    assert {kernel.name for kernel in verdict.resources} == set(remarked)
    for kernel in verdict.resources:
        compiler = remarked[kernel.name]
        assert {name: getattr(kernel, name) for name in fields} == {name: getattr(compiler, name) for name in fields}
        assert kernel.vgprs is not None and compiler.vgprs is not None
        assert 0 <= kernel.vgprs - compiler.vgprs < 4
    assert any(kernel.agprs for kernel in verdict.resources)
    assert verdict.conditions.not_checked == ()


def test_a_spill_is_a_warning_and_more_so_in_hipkittens(private: Path, cages: Cages) -> None:
    (plain,) = _read(_verdict("hip"), private, cages).conditions.warnings
    assert plain.startswith("crowded spills: ")
    assert "HipKittens" not in plain
    (warning,) = _read(_verdict("hipkittens"), _again(private), cages).conditions.warnings
    assert "its results may be wrong now and then" in warning


def _again(private: Path) -> Path:
    """The same folder for a second evaluation, as the first left it."""
    private.with_name("device_code").rename(private.with_name("earlier"))
    return private


def test_a_verdict_of_wrong_answers_has_them_too(private: Path, cages: Cages) -> None:
    verdict = incorrect("1_ReLU")
    kittens = verdict.conditions.model_copy(update={"backend": "hipkittens"})
    found = _read(verdict.model_copy(update={"conditions": kittens}), private, cages)
    assert len(found.conditions.warnings) == 1
    assert len(found.resources) == 3


def test_nothing_is_said_where_there_is_no_amd_code(private: Path, toolchain: HipToolchain, cages: Cages) -> None:
    before = _verdict("hip")
    assert _read(before, private, cages, arch="gfx950") == before  # built for another part
    (library,) = private.rglob("*.so")
    library.unlink()
    source = private / "host.c"
    source.write_text("int one(void) { return 1; }\n")
    done = run_tool(["cc", "-shared", "-fPIC", str(source), "-o", str(library)], private, 60)
    assert done.returncode == 0, done.output
    assert _read(before, _again(private), cages) == before


def test_the_machine_code_of_its_kernels_is_kept(private: Path, cages: Cages) -> None:
    text = asyncio.run(assembly_of(private, private.with_name("assembly"), "gfx942", cages))
    assert text is not None and text.startswith("# ext.so\n")
    assert "scale" in text and "v_mfma_f32_32x32x8_f16" in text and "s_endpgm" in text
    assert str(private.parent) not in text
    other = asyncio.run(assembly_of(private, private.with_name("assembly_of_another"), "gfx950", cages))
    assert other is not None and "not disassembled" in other and "no device code for gfx950" in other


def test_what_a_candidate_puts_there_is_data(private: Path, cages: Cages, tmp_path: Path) -> None:
    (library,) = private.rglob("*.so")
    outside = tmp_path / "outside.so"
    library.rename(outside)
    library.symlink_to(outside)  # no link is followed
    os.mkfifo(library.with_name("pipe.so"))  # and nothing is waited for
    library.with_name("short.so").write_bytes(outside.read_bytes()[:5000] + b".hip_fatbin")
    library.with_name("named.so").write_bytes(b"\x7fELF .hip_fatbin" + os.urandom(5000))
    found = _read(_verdict("hip"), private, cages)
    assert (found.resources, found.conditions.warnings) == ((), ())
    assert all(note.startswith("registers and spills of the built kernels: ") for note in found.conditions.not_checked)
    assert found.conditions.not_checked
