"""Precompiled headers for the real hipcc."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmarks.object_code import differences, own_functions
from hkbench.errors import ToolchainUnavailable
from hkbench.fastbuild.hip_builds import HipPchBuilder
from hkbench.fastbuild.pch_cache import PchRequest
from hkbench.toolchain.build_hip import BuildResult, build_hip
from hkbench.toolchain.code_object import Tools, code_objects
from hkbench.toolchain.extension import ExtensionCall
from hkbench.toolchain.hip import HipToolchain, find_hip

DEVICE = """
#include <hip/hip_runtime.h>
#include <pybind11/pybind11.h>
__global__ void doubled(float* x, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) x[i] *= 2.0f;
}
void launch(uintptr_t x, int count) { doubled<<<(count + 255) / 256, 256>>>(reinterpret_cast<float*>(x), count); }
"""
HOST = """
#include <cstdint>
void launch(uintptr_t x, int count);
extern "C" void call(uintptr_t x, int count) { launch(x, count); }
"""


@pytest.fixture(scope="module")
def toolchain() -> HipToolchain:
    try:
        return find_hip()
    except ToolchainUnavailable as error:
        pytest.skip(f"precompiled headers for hipcc are NOT tested here: {error}")


def built(toolchain: HipToolchain, folder: Path, pchs: HipPchBuilder | None, device: str = DEVICE) -> BuildResult:
    call = ExtensionCall(name="doubled", cpp_sources=(HOST,), cuda_sources=(device,), no_implicit_headers=True)
    return build_hip(call, "gfx942", folder, 600.0, toolchain, pchs=pchs)


@pytest.mark.slow
def test_with_precompiled_headers_hipcc_makes_the_same_code_and_says_the_same_of_errors(
    toolchain: HipToolchain, tmp_path: Path
) -> None:
    pchs = HipPchBuilder(toolchain, None, tmp_path / "pchs")
    assert built(toolchain, tmp_path / "stock", pchs).ok
    (wanted,) = pchs.wanted
    assert not isinstance(wanted, PchRequest)
    assert "pybind11/pybind11.h" in wanted.headers
    assert pchs.make_wanted() == []
    quick = built(toolchain, tmp_path / "quick", pchs)
    assert quick.ok, quick.error
    assert pchs.used == 1 and not pchs.wanted, "the second build used no PCH"
    assert [kernel.name for kernel in quick.resources] == ["doubled(float*, int)"], "the compiler's remarks are gone"
    stock_code, quick_code = (own_functions(tmp_path / name / "device.o") for name in ("stock", "quick"))
    assert any("launch" in name for name in stock_code)
    assert differences(stock_code, quick_code) == []
    assert device_text(toolchain, tmp_path / "stock") == device_text(toolchain, tmp_path / "quick")

    wrong = DEVICE.replace("x[i] *= 2.0f", "x[i] *= no_such_name")
    usual, tried = (built(toolchain, tmp_path / name, used, wrong) for name, used in (("bad", None), ("tried", pchs)))
    assert "no_such_name" in (usual.error or "")
    assert tried.error == usual.error
    assert pchs.used == 2, "the message is of hipcc, not of its passes with a PCH"


def device_text(toolchain: HipToolchain, folder: Path) -> bytes:
    tools = Tools(toolchain, folder / "compared", time.monotonic() + 60.0)
    (image,) = code_objects(folder / "doubled.so", "gfx942", tools)
    tools.run("llvm-objcopy", "-O", "binary", "--only-section=.text", str(image), str(folder / "text"))
    text = (folder / "text").read_bytes()
    assert text
    return text
