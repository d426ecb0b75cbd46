"""The comparison in one pass: on the host by one thread, on an emulated AMD GPU, and compiled for NVIDIA's."""

from __future__ import annotations

import ctypes
import math
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from support.compilers import hip_or_skip
from support.emulated import device_code, run

from hkbench.analysis import fused
from hkbench.analysis.compare import Scale, _largest, root_mean_square
from hkbench.devices.kernels import BLOCK
from hkbench.emulator.program import Program

#: What a GPU's compiler knows by itself.
HOST = r"""
#define __HIP_PLATFORM_AMD__
#define __global__
#define __device__
#define __shared__ static
#define __syncthreads()
struct Place { unsigned x; };
static const Place blockIdx{0}, blockDim{1}, threadIdx{0}, gridDim{1};
static void atomicMax(unsigned long long* to, unsigned long long value) { if (value > *to) *to = value; }
"""
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("fused")
    (folder / "host.cpp").write_text(HOST + fused.SOURCE)
    library = folder / "host.so"
    command = ["g++", "-O1", "-shared", "-fPIC", "-DBLOCK=1", str(folder / "host.cpp"), "-o", str(library)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def place(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), fused.KINDS[tensor.dtype]


def errors_by(host: ctypes.CDLL, want: torch.Tensor, have: torch.Tensor, scale: float) -> tuple[float, float]:
    found = torch.zeros(2, dtype=torch.int64)
    bits = int.from_bytes(struct.pack("<d", scale), "little")
    arguments = (*place(want), *place(have), want.numel(), bits, found.data_ptr())
    host.errors(*map(ctypes.c_uint64, arguments))
    error, ratio = found.view(torch.float64).tolist()
    return error, ratio


@pytest.mark.parametrize("have_dtype", DTYPES, ids=str)
@pytest.mark.parametrize("want_dtype", DTYPES, ids=str)
def test_the_largest_errors_are_those_of_pytorchs_operators(
    host: ctypes.CDLL, want_dtype: torch.dtype, have_dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(7)
    want = torch.randn(10_001, generator=generator, dtype=torch.float64).to(want_dtype)
    have = (want.double() * (1.0 + 1e-3 * torch.randn(10_001, generator=generator))).to(have_dtype)
    scale = Scale(want.double())
    expected = _largest(want, have, scale)
    want[3] = have[3] = math.inf  # has no error
    assert errors_by(host, want, have, scale.value) == pytest.approx(expected, rel=1e-12)
    assert errors_by(host, have, have, scale.value) == (0.0, 0.0)


@pytest.mark.parametrize(("want", "have"), [(1.0, math.nan), (math.nan, 1.0), (math.nan, math.nan)])
def test_what_is_no_number_is_the_largest_error(host: ctypes.CDLL, want: float, have: float) -> None:
    wanted, had = (torch.tensor([1.0, one, math.inf], dtype=torch.float64) for one in (want, have))
    had[2] = 5.0
    assert math.isnan(errors_by(host, wanted, had, 1.0)[0])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_norm(host: ctypes.CDLL, dtype: torch.dtype) -> None:
    values = torch.randn(5_000, generator=torch.Generator().manual_seed(3)).to(dtype)
    total = torch.zeros(1, dtype=torch.float64)
    host.squares(*map(ctypes.c_uint64, (*place(values), values.numel(), total.data_ptr())))
    assert math.sqrt(float(total) / values.numel()) == pytest.approx(root_mean_square(values), rel=1e-12)


@pytest.mark.hipcc
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_an_emulated_amd_gpu_finds_the_same(arch: str, tmp_path: Path) -> None:
    hip_or_skip("no kernel was compiled")
    source = "#include <hip/hip_runtime.h>\n#define BLOCK 256\n" + fused.SOURCE
    program = Program.load(device_code(source, arch, tmp_path))
    rng = np.random.default_rng(5)
    want = rng.standard_normal(3_000)
    have = (want + 1e-3 * rng.standard_normal(3_000)).astype(np.float16)
    found, sums = np.zeros(2), np.zeros(2)
    places = struct.pack("<5Qd", want.ctypes.data, 0, have.ctypes.data, 2, want.size, 0.5)
    outcome = run(
        program,
        (2,),
        256,
        places + struct.pack("<Q", found.ctypes.data),
        [want, have, found],
        lds=4096,
        kernel="errors",
    )
    off = np.abs(want - have.astype(np.float64))
    assert not outcome.faults
    assert found == pytest.approx([off.max(), (off / (np.abs(want) + 0.5)).max()], rel=1e-12)
    arguments = struct.pack("<4Q", have.ctypes.data, 2, have.size, sums.ctypes.data)
    assert not run(program, (2,), 256, arguments, [have, sums], lds=2048, kernel="squares").faults
    assert sums.sum() == pytest.approx(np.square(have.astype(np.float64)).sum(), rel=1e-12)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="the kernels were not compiled for NVIDIA GPUs: no nvcc here")
def test_they_compile_for_nvidia(tmp_path: Path) -> None:
    source = tmp_path / "fused.cu"
    source.write_text(fused.SOURCE)
    command = ["nvcc", "-arch=sm_90", f"-DBLOCK={BLOCK}", "-ptx", str(source), "-o", str(tmp_path / "fused.ptx")]
    subprocess.run(command, check=True)


def test_tensors_of_the_host_are_for_pytorchs_operators() -> None:
    assert not fused.covers(torch.ones(3), torch.ones(3))
