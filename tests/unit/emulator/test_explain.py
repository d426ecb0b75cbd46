"""Faults are told at the lines that a kernel's author wrote, once for each change that is to be made."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.compilers import hip_or_skip
from support.emulated import device_code, run

from hkbench.emulator.explain import enough, explained, plain
from hkbench.emulator.faults import Fault, Place
from hkbench.emulator.program import Program

#: A library's function reads from LDS in assembly, as HipKittens' do, and its caller has to wait.
LIBRARY = r"""
__device__ inline void to_lds(unsigned at, float value) {
  asm volatile("ds_write_b32 %0, %1" :: "v"(at), "v"(value) : "memory");
}
__device__ inline float from_lds(unsigned at) {
  float value;
  asm volatile("ds_read_b32 %0, %1" : "=v"(value) : "v"(at));
  return value;
}
"""
KERNEL = r"""#include <hip/hip_runtime.h>
#include "library.h"
__global__ __launch_bounds__(64) void added(const float *x, float *y) {
  const float before = x[threadIdx.x];
  to_lds(4 * threadIdx.x, before);
  asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory");
  const float a = from_lds(4 * threadIdx.x);
  const float b = from_lds(4 * (threadIdx.x ^ 1));
  y[threadIdx.x] = a + b;
}
"""


@pytest.mark.hipcc
def test_one_change_is_one_fault_by_the_names_that_were_written(tmp_path: Path) -> None:
    hip_or_skip("no fault was explained")
    program = Program.load(_compiled(tmp_path))
    faults = _faults(program)
    (told,) = explained(faults, program)
    assert len(faults) > 1 and told.count == sum(fault.count for fault in faults)
    assert (told.kind, told.kernel, told.use.source) == ("wait", "added", "kernel.hip:9")
    assert told.cause is not None and told.cause.written == "kernel.hip:7"
    assert told.cause.source.startswith("library.h:") and told.also == ("kernel.hip:8",)
    for said in ("added:", "kernel.hip:9", "kernel.hip:7", "kernel.hip:8", "lgkmcnt(0)"):
        assert said in str(told)


@pytest.mark.hipcc
def test_a_use_that_the_compiler_moved_above_its_wait_is_told_so(tmp_path: Path) -> None:
    """The listing has the wait behind the use, at a line before it."""
    hip_or_skip("no fault was explained")
    program = Program.load(_compiled(tmp_path))
    (fault, *_) = _faults(program)
    at = program.code.index[fault.use.address]
    lines = program.code.lines
    lines[at + 1] = replace(lines[at + 1], text="s_waitcnt lgkmcnt(0)", place=str(tmp_path / "kernel.hip:8"))
    (told,) = explained([fault], program)
    assert told.passed == "kernel.hip:8" and "sched_barrier" in str(told)


@pytest.mark.parametrize(
    ("waits", "all_of_them"),
    [
        (["lgkmcnt(7)", "lgkmcnt(3)"], "lgkmcnt(3)"),
        (["vmcnt(1)", "lgkmcnt(2)", "vmcnt(0) lgkmcnt(4)"], "vmcnt(0) lgkmcnt(2)"),
        (["a barrier", "a barrier"], "a barrier"),
    ],
)
def test_one_wait_is_enough_for_all(waits: list[str], all_of_them: str) -> None:
    assert enough(waits) == all_of_them


@pytest.mark.parametrize("kind", ["wait", "race", "out_of_bounds", "uninitialized"])
def test_each_kind_names_kernel_line_and_cause(kind: str) -> None:
    use, cause = Place("ds_read_b32 v1, v2", "a.hip:7", 64), Place("ds_write_b32 v2, v1", "a.hip:5", 32)
    fault = Fault(kind, "k", use, cause if kind in ("wait", "race") else None, "vmcnt(0)", "v1", (0, 0, 0), 0, 2)
    assert all(part in str(fault) for part in ("k:", "a.hip:7", "2 times"))
    assert ("a.hip:5" in str(fault)) is (fault.cause is not None)


@pytest.mark.parametrize(
    ("source", "callers", "written"),
    [
        ("a.hip:7", (), "a.hip:7"),
        ("tile.cuh:70", ("a.hip:7", "a.hip:30"), "a.hip:7"),
        ("a.hip:7", ("a.hip:30",), "a.hip:7"),  # a function of the kernel's own file
        ("", (), ""),
    ],
)
def test_the_line_is_one_that_the_kernels_author_wrote(source: str, callers: tuple[str, ...], written: str) -> None:
    place = Place("ds_read_b32 v1, v2", source, 64, callers)
    assert place.written == written
    assert all(line in str(place) for line in (source, written))


@pytest.mark.parametrize(
    ("mangled", "name"),
    [("_Z11linear_gelu7globals", "linear_gelu"), ("_ZN2my4gemmILi4EEEvPf", "gemm"), ("_attn_fwd", "_attn_fwd")],
)
def test_kernels_lose_what_makes_them_long(mangled: str, name: str) -> None:
    assert plain(mangled) == name


def _compiled(folder: Path) -> bytes:
    (folder / "library.h").write_text(LIBRARY)
    return device_code(KERNEL, "gfx942", folder)


def _faults(program: Program) -> tuple[Fault, ...]:
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    arguments = struct.pack("<QQ", x.ctypes.data, y.ctypes.data)
    return run(program, (1,), 64, arguments, [x, y], lds=256).faults
