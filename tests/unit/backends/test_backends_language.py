"""What a candidate's kernels are written in, by traces and samples in the form that the runner and the guard give."""

from __future__ import annotations

from typing import Any

import pytest

from hkbench.backends import find_backend
from hkbench.backends.language import language_of_kernels, language_of_launches, language_of_objects
from hkbench.profile.names import Built
from hkbench.records import BackendName, DeviceKind, KernelLanguage

CANDIDATE = '''
import triton
SOURCE = r"""
#include "kittens.cuh"
using namespace kittens;
__global__ void tiles(const globals g) { rt_bf<32, 32> t; load(t, g.x, {0, 0, 0, 0}); }
__global__ void plain(float* x) { x[threadIdx.x] *= 2.0f; }
"""

@triton.jit
def rows(x, N: tl.constexpr):
    pass
'''
TILES = "tiles(globals)"
PLAIN = "void plain(float*)"
ROWS = "rows_0d1d"
GEMM = "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SN_1LDSB0_APM1"


def trace(*kernels: tuple[str, float]) -> dict[str, Any]:
    return {"kernels": [{"name": name, "kind": "kernel", "calls": 1, "seconds": s} for name, s in kernels]}


def told(device: DeviceKind, *kernels: tuple[str, float]) -> KernelLanguage | None:
    return language_of_kernels(trace(*kernels), CANDIDATE, Built(), device, "hip")


@pytest.mark.parametrize(
    ("device", "kernels", "language", "which"),
    [
        (DeviceKind.ROCM, [(TILES, 1.0)], "hipkittens", ("tiles",)),
        (DeviceKind.ROCM, [(PLAIN, 9.0), ("_Z5tiles7globals.kd", 1.0)], "hipkittens", ("tiles",)),
        (DeviceKind.ROCM, [(PLAIN, 1.0), (GEMM, 9.0)], "hip", ()),
        (DeviceKind.ROCM, [(PLAIN, 1.0), (ROWS, 9.0)], "triton", ("rows",)),
        (DeviceKind.ROCM, [(PLAIN, 9.0), (ROWS, 1.0)], "hip", ()),
        (DeviceKind.CUDA, [(PLAIN, 9.0), (ROWS, 1.0)], "cuda", ("plain",)),
        (DeviceKind.CUDA, [(ROWS, 9.0), (PLAIN, 1.0)], "triton", ("rows",)),
    ],
)
def test_the_kernels_that_ran_decide(
    device: DeviceKind, kernels: list[tuple[str, float]], language: BackendName, which: tuple[str, ...]
) -> None:
    found = told(device, *kernels)
    assert found is not None
    assert found.ran
    assert found.backend == language
    assert found.kernels == which


@pytest.mark.parametrize(
    ("kernels", "language"),
    [
        ({"_Z5tiles7globals": 5, "_Z5plainPf": 9}, "hipkittens"),
        ({"_Z5plainPf": 9}, "hip"),
        ({"rows_0d1d": 9, "_Z5plainPf": 1}, "triton"),
        ({"triton_poi_fused_add_0": 9}, None),
    ],
)
def test_what_an_emulated_gpu_executed_decides(kernels: dict[str, int], language: BackendName | None) -> None:
    found = language_of_launches(kernels, CANDIDATE, Built(), DeviceKind.EMULATED_GFX942, "hip")
    assert (None if found is None else found.backend) == language


def test_a_hipkittens_kernel_that_did_not_run_makes_it_plain_hip() -> None:
    found = told(DeviceKind.ROCM, (PLAIN, 1.0))
    assert found is not None
    assert found.reason == "tiles, written with HipKittens, did not run"
    assert find_backend("hipkittens").language_warning(found) == f"not HipKittens but plain HIP: {found.reason}"
    assert find_backend("hip").language_warning(found) is None


def test_a_library_s_kernel_says_nothing_of_the_candidate() -> None:
    assert told(DeviceKind.ROCM, (GEMM, 1.0)) is None
    assert told(DeviceKind.CUDA, (GEMM, 1.0)) is None


@pytest.mark.parametrize("device", [DeviceKind.ROCM, DeviceKind.CUDA])
def test_a_kernel_that_the_text_does_not_define_is_not_known(device: DeviceKind) -> None:
    built = Built(kernels=frozenset({"assembled"}))
    assert language_of_kernels(trace(("assembled(int)", 1.0)), CANDIDATE, built, device, "hip") is None


@pytest.mark.parametrize("broken", [{}, {"error": "no trace"}, {"kernels": "none"}, {"kernels": [{"name": 3}, None]}])
def test_a_broken_trace_says_nothing(broken: dict[str, Any]) -> None:
    assert language_of_kernels(broken, CANDIDATE, Built(), DeviceKind.ROCM, "hip") is None


def test_triton_asked_for_hipkittens_is_named() -> None:
    found = told(DeviceKind.ROCM, (ROWS, 1.0))
    assert found is not None
    assert find_backend("hipkittens").language_warning(found) == f"not HipKittens but triton: {found.reason}"


def test_native_code_in_the_private_folder_is_cpp() -> None:
    objects = {"/usr/lib/libtorch_cpu.so": 90, "/private/ext/ext.so": 10}
    found = language_of_objects(objects, "/private", "", Built(), "cpp")
    assert found == KernelLanguage(backend="cpp", reason="native code of its ext.so ran", ran=True)


@pytest.mark.parametrize(
    ("objects", "built"),
    [
        ({}, Built()),
        ({"/usr/lib/libtorch_cpu.so": 90, "[anon]": 3}, Built()),
        ({"/private/made.so": 90}, Built(objects={"/private/made.so": "inductor"})),
        ({"/private2/ext.so": 90}, Built()),
    ],
)
def test_what_others_made_is_no_language(objects: dict[str, int], built: Built) -> None:
    assert language_of_objects(objects, "/private", "", built, "cpp") is None
