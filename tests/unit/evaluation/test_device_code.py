"""The evaluator's kernels: `take` on the host, by one thread over ordinary memory, and both compiled for AMD's GPUs."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
import torch
from support.compilers import hip_or_skip

from hkbench.evaluation.device_code import PIECE, SOURCE, drawn_order
from hkbench.protocol.gate import MAX_DIMS

#: What a GPU's compiler knows by itself. The clock stands still.
HOST = r"""
#define __HIP_PLATFORM_AMD__
#define __global__
#define __device__
struct uint4 { unsigned x, y, z, w; };
struct double2 { double x, y; };
struct Place { unsigned x; };
static const Place blockIdx{0}, blockDim{1}, threadIdx{0}, gridDim{1};
static unsigned long long wall_clock64() { return 7; }
"""
MACROS = (f"-DDIMS={MAX_DIMS}", f"-DPIECE={PIECE}")
THERE = 1 << 40  #: where the memory lies in the other process


@pytest.fixture(scope="module")
def take(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("device_code")
    (folder / "host.cpp").write_text(HOST + SOURCE)
    library = folder / "host.so"
    command = ["g++", "-O1", "-shared", "-fPIC", *MACROS, str(folder / "host.cpp"), "-o", str(library)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def taken(
    library: ctypes.CDLL,
    memory: torch.Tensor,
    tensor: torch.Tensor,
    strides: tuple[int, ...] | None = None,
    at: int = 0,
) -> tuple[torch.Tensor, int]:
    """`tensor`, a view of `memory`, as it is taken, and how many were missing. `at`: bytes that it lies off."""
    address = THERE + tensor.data_ptr() - memory.data_ptr() + at
    own = tensor.stride() if strides is None else strides
    place = torch.tensor([address, *own, *[0] * (MAX_DIMS - len(own))])
    table = torch.tensor([[2, 0, 0], [5, 8, memory.data_ptr()], [THERE, memory.nbytes, memory.data_ptr()]])
    shape = torch.tensor([*tensor.shape, *[1] * (MAX_DIMS - tensor.dim())])
    result, missing = torch.zeros(tensor.shape, dtype=tensor.dtype), torch.zeros(1, dtype=torch.int64)
    arguments = (
        place.data_ptr(), table.data_ptr(), shape.data_ptr(),
        tensor.numel(), tensor.element_size(), result.data_ptr(), missing.data_ptr(), *drawn_order(result.nbytes),
    )  # fmt: skip
    library.take(*map(ctypes.c_uint64, arguments))
    return result, int(missing)


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.bfloat16, torch.float32, torch.float64, torch.complex128], ids=str
)
def test_any_layout_is_taken(take: ctypes.CDLL, dtype: torch.dtype) -> None:
    memory = torch.randint(0, 100, (1 << 15,)).to(dtype)
    block = memory[64 : 64 + 30 * 5 * 70 * 2].view(30, 5, 70, 2)
    layouts = (memory, memory[1:], block, block.permute(2, 0, 3, 1), block[:, ::2, 1:4], block[1, 2, 3, 1])
    for tensor in layouts:
        result, missing = taken(take, memory, tensor)
        assert torch.equal(result, tensor) and not missing


def test_no_part_of_a_tensor_is_always_taken_last() -> None:
    pieces, last = 100, set()
    for _ in range(200):
        first, stride = drawn_order(pieces * PIECE)
        order = [(first + number * stride) % pieces for number in range(pieces)]
        assert sorted(order) == list(range(pieces))
        last.add(order[-1])
    assert len(last) > pieces // 2


@pytest.mark.parametrize(
    ("strides", "at"),
    [((4096, 1), 0), ((1 << 41, 1), 0), ((-1, 1), 0), (None, -4), (None, 4096 * 4 - 16), (None, 2)],
    ids=["beyond the end", "far strides", "negative strides", "before the start", "across the end", "misaligned"],
)
def test_memory_that_was_not_shown_is_not_read(take: ctypes.CDLL, strides: tuple[int, ...] | None, at: int) -> None:
    memory = torch.rand(4096)
    result, missing = taken(take, memory, memory[:64].view(8, 8), strides, at)
    assert missing == 1 and not result.any()


@pytest.mark.hipcc
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_they_compile_for_amd(tmp_path: Path, arch: str) -> None:
    toolchain = hip_or_skip("the evaluator's kernels were not compiled")
    source = tmp_path / "judge.hip"
    source.write_text("#include <hip/hip_runtime.h>\n" + SOURCE)
    command = [str(toolchain.hipcc), f"--offload-arch={arch}", "--cuda-device-only", *MACROS, "-c"]
    subprocess.run([*command, str(source), "-o", str(tmp_path / "judge.o")], check=True)
