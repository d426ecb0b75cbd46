"""A report about inlined code says where the kernel calls it."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from support.compilers import hip_or_skip
from support.emulated import device_code, run

from hkbench.emulator.callers import callers
from hkbench.emulator.program import Program

HEADER = """#pragma once
__device__ inline void put(float* to, int n, float value) {
  to[n] = value;
}
"""
KERNEL = """#include <hip/hip_runtime.h>
#include "{header}"
__global__ __launch_bounds__(128) void reversed(float* x) {{
  __shared__ float held[128];
  const int n = threadIdx.x;
  put(held, n, x[n]);  // line 6, and no barrier behind it
  x[n] = held[127 - n];  // line 7
}}
"""


@pytest.mark.hipcc
def test_a_race_in_a_header_names_the_kernels_lines(tmp_path: Path) -> None:
    hip_or_skip("no kernel was compiled")
    header = tmp_path / "library.h"
    header.write_text(HEADER)
    program = Program.load(device_code(KERNEL.format(header=header), "gfx942", tmp_path))
    x = np.arange(128, dtype=np.float32)
    outcome = run(program, (1,), 128, struct.pack("<Q", x.ctypes.data), [x])
    race = next(fault for fault in outcome.faults if fault.kind == "race")
    assert race.cause is not None
    places = {place.source.rpartition("/")[2]: place.callers for place in (race.use, race.cause)}
    source = str(tmp_path / "kernel.hip")
    assert places["library.h:3"] == (f"{source}:6",)
    assert places["kernel.hip:7"] == ()
    assert f"{source}:6 (" in str(race)


@pytest.mark.hipcc
def test_what_cannot_be_read_has_no_callers(tmp_path: Path) -> None:
    hip_or_skip("no symbolizer was found")
    symbolizer = Path("/bin/false")
    assert callers(b"no code object", [0], symbolizer) == {}
    assert callers(b"no code object", [0], tmp_path / "absent") == {}
