"""Kernels for the emulated device: compiled for the device only, and launched with NumPy's arrays."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hipkittens_build.source import MACROS, compile_flags
from hkbench.emulator.executor import Launch, Memory, Options, Outcome, launch
from hkbench.emulator.listing import tool
from hkbench.emulator.program import Program
from hkbench.toolchain.hip import find_hip

Array = npt.NDArray[np.generic]
Floats = npt.NDArray[np.float64]


def device_code(source: str, arch: str, folder: Path, include: Path | None = None) -> bytes:
    """Return the code object of a HIP source; `include`: HipKittens' headers, which it is compiled with then."""
    toolchain = find_hip()
    file, output = folder / "kernel.hip", folder / "kernel.co"
    file.write_text(source, encoding="utf-8")
    command = [str(toolchain.hipcc), "-x", "hip", f"--offload-arch={arch}", "-gline-tables-only", "-std=c++20", "-O3"]
    command += ["--cuda-device-only", "--no-gpu-bundle-output"]
    command += compile_flags(MACROS[arch], include, toolchain.include) if include else []
    subprocess.run([*command, "-c", str(file), "-o", str(output)], check=True, capture_output=True, timeout=300)
    return output.read_bytes()


def kernel_source(candidate: Path) -> str:
    """Return the HIP text of a candidate."""
    found = re.search(r'HIP = r"""(.*?)"""', candidate.read_text(encoding="utf-8"), re.S)
    assert found is not None
    return found[1]


def to_bf16(values: Floats) -> npt.NDArray[np.uint16]:
    """Round to the nearest bfloat16."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits: Array) -> Floats:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def layout(array: Array, *dimensions: int, fixed: bool = False) -> bytes:
    """Return the bytes of a `kittens::gl`; `fixed`: the last dimension is one of the type."""
    shape = (1,) * (4 - len(dimensions)) + dimensions
    sizes = struct.pack("<4Q", *shape)
    return struct.pack("<Q", array.ctypes.data) + (sizes[:24] if fixed else sizes) + bytes(8)


def run(
    program: Program,
    grid: Sequence[int],
    threads: int,
    kernarg: bytes,
    arrays: Sequence[Array],
    *,
    lds: int = 0,
    kernel: str | None = None,
    options: Options | None = None,
) -> Outcome:
    """Launch a program's kernel (its only one, unless named) over the arrays."""
    memory = Memory()
    for number, array in enumerate(arrays):
        memory.add(array.ctypes.data, array.nbytes, f"array {number}")
    name = kernel or next(iter(program.kernels))
    x, y, z = (*grid, 1, 1)[:3]
    arguments = kernarg + bytes(-len(kernarg) % 8)  # a struct is as long as its alignment wants
    return launch(program, Launch(name, (x, y, z), (threads, 1, 1), lds, arguments), memory, options or Options())


_KERNEL = """
.amdgcn_target "amdgcn-amd-amdhsa--{arch}"
.text
.globl k
.p2align 8
.type k,@function
k:
{text}
s_endpgm
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_group_segment_fixed_size {lds}
  .amdhsa_private_segment_fixed_size {scratch}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_next_free_vgpr 256
  .amdhsa_next_free_sgpr 96
  .amdhsa_accum_offset 256
  .amdhsa_kernarg_size 64
{directives}.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 64
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {lds}
    .private_segment_fixed_size: {scratch}
    .wavefront_size: 64
    .sgpr_count: 96
    .vgpr_count: 256
    .max_flat_workgroup_size: 1024
...
.end_amdgpu_metadata
"""


def assembled(
    text: str, folder: Path, arch: str = "gfx942", *, lds: int = 0, scratch: int = 0, directives: str = ""
) -> Program:
    """Return a program whose kernel `k` is the text; s[0:1] points to its arguments, s2 is the workgroup's number."""
    source, output = folder / "kernel.s", folder / "kernel.elf"
    source.write_text(
        _KERNEL.format(arch=arch, text=text, lds=lds, scratch=scratch, directives=directives), encoding="utf-8"
    )
    clang = tool("clang")
    command = [str(clang), "-x", "assembler", "-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", str(source)]
    subprocess.run([*command, "-o", str(output)], check=True, capture_output=True, timeout=60)
    return Program.load(output.read_bytes())
