"""Real HIP builds without an AMD GPU; skipped, with the install command, where there is no HIP compiler."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from support.compilers import hip_or_skip

from hkbench.toolchain.build_hip import BuildResult, build_hip
from hkbench.toolchain.extension import ExtensionCall
from hkbench.toolchain.hip import ARCHITECTURES, HipToolchain

pytestmark = [pytest.mark.hipcc, pytest.mark.slow]

DEVICE = """
#include <hip/hip_runtime.h>

__global__ void __launch_bounds__(256) scale(float* __restrict__ x, float a, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}

hipError_t launch(float* x, float a, int n, hipStream_t stream) {
    scale<<<dim3((n + 255) / 256), dim3(256), 0, stream>>>(x, a, n);
    return hipGetLastError();
}
"""
HOST = """
#include <torch/types.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <c10/cuda/CUDAStream.h>

hipError_t launch(float* x, float a, int n, hipStream_t stream);

void scale_(const at::Tensor& x, double a) {
    launch(x.data_ptr<float>(), a, x.numel(), c10::cuda::getCurrentCUDAStream());
}
"""
#: A host half without PyTorch's headers, for the builds whose device half is what matters.
SHORT_HOST = '#include <Python.h>\nextern "C" PyObject* PyInit_ext() { return nullptr; }\n'
LEAN = {"name": "ext", "no_implicit_headers": True}
#: Keeps a compiler busy for hours.
ENDLESS = "constexpr long f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\nstatic_assert(f(90) > 0);\n"
HIP_DEFINES = ("-D__HIP_PLATFORM_AMD__=1", "-DUSE_ROCM=1")


@pytest.fixture(scope="module")
def toolchain() -> HipToolchain:
    return hip_or_skip("no HIP build was tested")


def _build(
    toolchain: HipToolchain, folder: Path, arch: str = "gfx942", timeout: float = 400, **call: object
) -> BuildResult:
    return build_hip(ExtensionCall.model_validate({**LEAN, **call}), arch, folder, timeout, toolchain)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_an_extension_for_torch_compiles_and_links(toolchain: HipToolchain, tmp_path: Path, arch: str) -> None:
    call: dict[str, Any] = {"cpp_sources": HOST, "cuda_sources": DEVICE, "functions": ["scale_"]}
    result = _build(toolchain, tmp_path, arch, extra_cflags=HIP_DEFINES, **call)
    assert result.error is None
    assert result.ok
    (kernel,) = result.resources
    assert (kernel.name, kernel.arch) == ("scale(float*, float, int)", arch)
    assert (kernel.vgpr_spills, kernel.scratch_bytes_per_lane) == (0, 0)
    assert kernel.vgprs is not None
    assert 0 < kernel.vgprs < 32
    assert result.library is not None
    assert f"hipv4-amdgcn-amd-amdhsa--{arch}".encode() in result.library.read_bytes()
    assert any("never run" in note for note in result.not_checked)


def test_cuda_text_is_hipified(toolchain: HipToolchain, tmp_path: Path) -> None:
    cuda = DEVICE.replace("hip/hip_runtime.h", "cuda_runtime.h").replace("hip", "cuda")
    result = _build(toolchain, tmp_path, cpp_sources=SHORT_HOST, cuda_sources=cuda)
    assert (result.ok, result.error) == (True, None)


def test_the_first_error_is_at_the_candidates_own_line(toolchain: HipToolchain, tmp_path: Path) -> None:
    broken = DEVICE.replace("x[i] *= a;", "x[i] *= b;")
    line = broken.splitlines().index("    if (i < n) x[i] *= b;") + 1
    result = _build(toolchain, tmp_path, cpp_sources=SHORT_HOST, cuda_sources=broken)
    assert not result.ok
    assert not result.timed_out
    assert (result.error or "").startswith(f"cuda_sources:{line}:24: error: use of undeclared identifier 'b'")
    assert result.library is None


def test_the_other_half_is_stopped_when_one_half_fails(toolchain: HipToolchain, tmp_path: Path) -> None:
    result = _build(
        toolchain,
        tmp_path,
        timeout=100_000,
        cpp_sources=ENDLESS + SHORT_HOST,
        cuda_sources="#error stop here",
        extra_cflags=["-fconstexpr-steps=4294967295"],
        cxx="/any/hipcc",
    )
    assert not result.timed_out
    assert "error: stop here" in (result.error or "")


def test_a_function_that_nobody_defines_fails_at_the_link(toolchain: HipToolchain, tmp_path: Path) -> None:
    host = SHORT_HOST + "void missing(int);\nvoid call_it() { missing(1); }\n"
    result = _build(toolchain, tmp_path, cpp_sources=host, cuda_sources=DEVICE)
    assert result.error == "error: undefined symbol: missing(int)"


def test_a_compiler_that_never_ends_is_stopped_with_its_children(toolchain: HipToolchain, tmp_path: Path) -> None:
    result = _build(
        toolchain,
        tmp_path,
        timeout=8,
        cpp_sources=SHORT_HOST,
        cuda_sources=ENDLESS + DEVICE,
        extra_cuda_cflags=["-fconstexpr-steps=4294967295"],
    )
    assert (result.ok, result.timed_out) == (False, True)
    assert "not done within the build's 8 s" in (result.error or "")
    for _ in range(100):  # a killed process needs a moment to be gone
        if not _processes_below(tmp_path):
            break
        time.sleep(0.05)
    assert not _processes_below(tmp_path)


def test_a_flag_that_loads_a_plugin_is_refused(toolchain: HipToolchain, tmp_path: Path) -> None:
    result = _build(
        toolchain, tmp_path, cpp_sources=SHORT_HOST, cuda_sources=DEVICE, extra_cuda_cflags=["-fplugin=x.so"]
    )
    assert result.error == "error: a build does not pass on these flags: -fplugin=x.so"


def _processes_below(folder: Path) -> list[str]:
    """Command lines of running processes that name `folder`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(folder).encode() in command:
            found.append(command.decode("utf-8", "replace"))
    return found
