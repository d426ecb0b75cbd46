"""Damaged code objects and wild arguments: whatever they hold, the executor refuses or goes on, and lives."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest
from support.compilers import hip_or_skip
from support.emulated import device_code, run

from hkbench.emulator.executor import Options
from hkbench.emulator.program import BadCodeObject, Program

SOURCE = """
#include <hip/hip_runtime.h>
__global__ void k(const float *a, float *o, int n) {
  __shared__ float s[256];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  float x = 0;
  for (int i = 0; i < n; ++i) x += s[(threadIdx.x * 7 + i) & 255] / (i + 1.5f);
  atomicAdd(o + (threadIdx.x & 3), x);
}
"""


@pytest.mark.hipcc
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_damaged_code_objects_do_not_end_the_process(arch: str, tmp_path: Path) -> None:
    hip_or_skip("no damaged code was executed")
    whole = device_code(SOURCE, arch, tmp_path)
    text = whole.find(bytes.fromhex("0000 81bf".replace(" ", "")))  # s_endpgm: the code lies before it
    assert text > 0
    data = np.zeros(1024, np.float32)
    loaded = 0
    for seed in range(12):
        draw = random.Random(seed)
        damaged = bytearray(whole)
        for _ in range(draw.choice((1, 4, 30))):
            damaged[draw.randrange(text - 500, text) if seed % 4 else draw.randrange(len(whole))] = draw.randrange(256)
        try:
            program = Program.load(bytes(damaged))
        except BadCodeObject:
            continue
        if not program.kernels:
            continue
        address = draw.choice((data.ctypes.data, 64, 2**63))
        arguments = struct.pack("<QQi4x", address, data.ctypes.data, 9) + bytes(256)
        options = Options(max_instructions=100_000, late=bool(seed & 1), seed=seed)
        outcome = run(program, (2,), 256, arguments, [data], options=options)
        assert all(str(fault) for fault in outcome.faults)
        loaded += 1
    assert loaded > 3


@pytest.mark.hipcc
def test_a_wild_pointer_is_a_fault_with_its_line(tmp_path: Path) -> None:
    hip_or_skip("no wild pointer was followed")
    program = Program.load(device_code(SOURCE, "gfx942", tmp_path))
    data = np.zeros(200, np.float32)  # the kernel reads 256
    out = np.zeros(4, np.float32)
    arguments = struct.pack("<QQi4x", data.ctypes.data, out.ctypes.data, 3)
    (fault,) = run(program, (1,), 256, arguments, [data, out]).faults
    assert fault.kind == "out_of_bounds"
    assert fault.use.source.endswith("kernel.hip:5")
    assert "behind the end of array 0" in fault.detail or "array 1" in fault.detail


@pytest.mark.hipcc
def test_an_endless_loop_meets_its_budget(tmp_path: Path) -> None:
    hip_or_skip("no endless loop was ended")
    source = "#include <hip/hip_runtime.h>\n__global__ void k(volatile int *p) { while (*p == 0) {} }"
    program = Program.load(device_code(source, "gfx942", tmp_path))
    data = np.zeros(16, np.int32)
    options = Options(max_instructions=200_000)
    outcome = run(program, (1,), 64, struct.pack("<Q", data.ctypes.data), [data], options=options)
    assert outcome.refusal is not None and outcome.refusal.kind == "budget"
