"""The model of the counters, against the manual's text: which waits prove which operation.

AMD Instinct MI300 ISA, "Data dependency resolution": VM_CNT is decremented in order by loads and stores; LGKM_CNT by
LDS operations in order, by scalar loads in any order; flat operations are counted by both, and return in any order.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compilers import hip_or_skip
from support.emulated import assembled, device_code, run

from hkbench.emulator.executor import Options, Outcome
from hkbench.emulator.program import Program

pytestmark = pytest.mark.hipcc
ADDRESS = "s_load_dwordx2 s[4:5], s[0:1], 0x0\nv_lshlrev_b32 v0, 4, v0\ns_waitcnt lgkmcnt(0)\n"
VM = "global_load_dword v{0}, v0, s[4:5]\n"
VM2 = "global_load_dwordx2 v[{0}:{1}], v0, s[4:5]\n"
STORE = "global_store_dword v0, v0, s[4:5] offset:8\n"
LDS = "ds_read_b32 v{0}, v0\n"
SCALAR = "s_load_dword s{0}, s[4:5], 0x0\n"
FLAT = "v_mov_b32 v20, s4\nv_mov_b32 v21, s5\nflat_load_dword v{0}, v[20:21]\n"
USE = "v_mov_b32 v9, v{0}\n"
SCALAR_USE = "s_mov_b32 s9, s{0}\n"


def _run(
    text: str, tmp_path: Path, *, late: bool = False
) -> tuple[Outcome, np.ndarray[tuple[int], np.dtype[np.uint32]]]:
    hip_or_skip("no wait was checked")
    program = assembled(ADDRESS + text, tmp_path, lds=1024)
    data = np.arange(512, dtype=np.uint32)
    outcome = run(program, (1,), 64, data.ctypes.data.to_bytes(8, "little"), [data], options=Options(late=late))
    assert outcome.refusal is None
    return outcome, data


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        # In order: a wait for N leaves at most the N youngest.
        (VM.format(1) + VM.format(2) + "s_waitcnt vmcnt(1)\n" + USE.format(1), ""),
        (VM.format(1) + VM.format(2) + "s_waitcnt vmcnt(1)\n" + USE.format(2), "vmcnt(0)"),
        (VM.format(1) + VM.format(2) + "s_waitcnt vmcnt(2)\n" + USE.format(1), "vmcnt(1)"),
        (VM.format(1) + STORE + "s_waitcnt vmcnt(1)\n" + USE.format(1), ""),
        (VM.format(1) + "s_waitcnt lgkmcnt(0)\n" + USE.format(1), "vmcnt(0)"),
        # A register that is loaded may not be written either.
        (VM.format(1) + "v_mov_b32 v1, 0\n", "vmcnt(0)"),
        (VM.format(1) + "v_mov_b32 v2, 0\n", ""),
        # Memory's loads return in order: one may follow another into its register, which is the younger one's then.
        (VM.format(1) + VM.format(1) + "s_waitcnt vmcnt(0)\n" + USE.format(1), ""),
        (VM.format(1) + VM.format(1) + "s_waitcnt vmcnt(1)\n" + USE.format(1), "vmcnt(0)"),
        (VM2.format(2, 3) + VM.format(3) + "s_waitcnt vmcnt(1)\n" + USE.format(2), ""),
        (VM2.format(2, 3) + VM.format(3) + USE.format(2), "vmcnt(1)"),
        (VM.format(1) + LDS.format(1), "vmcnt(0)"),
        (LDS.format(1) + VM.format(1), "lgkmcnt(0)"),
        (VM.format(0) + VM.format(1), "vmcnt(0)"),
        (LDS.format(1) + LDS.format(2) + "s_waitcnt lgkmcnt(1)\n" + USE.format(1), ""),
        (LDS.format(1) + LDS.format(2) + "s_waitcnt lgkmcnt(1)\n" + USE.format(2), "lgkmcnt(0)"),
        # Scalar loads return in any order: only zero proves them.
        (SCALAR.format(6) + SCALAR.format(7) + "s_waitcnt lgkmcnt(1)\n" + SCALAR_USE.format(6), "lgkmcnt(0)"),
        (SCALAR.format(6) + SCALAR.format(7) + "s_waitcnt lgkmcnt(0)\n" + SCALAR_USE.format(6), ""),
        # With both in flight, the younger scalar load may be what the counter lost: one is not enough, two LDS are.
        (LDS.format(1) + SCALAR.format(6) + "s_waitcnt lgkmcnt(1)\n" + USE.format(1), "lgkmcnt(0)"),
        (LDS.format(1) + LDS.format(2) + SCALAR.format(6) + "s_waitcnt lgkmcnt(1)\n" + USE.format(1), ""),
        # Flat operations owe both.
        (FLAT.format(1) + "s_waitcnt vmcnt(0)\n" + USE.format(1), "lgkmcnt(0)"),
        (FLAT.format(1) + "s_waitcnt lgkmcnt(0)\n" + USE.format(1), "vmcnt(0)"),
        (FLAT.format(1) + "s_waitcnt vmcnt(0) lgkmcnt(0)\n" + USE.format(1), ""),
        (VM.format(1) + FLAT.format(2) + "s_waitcnt vmcnt(1)\n" + USE.format(1), "vmcnt(0)"),
        # A counter that is full stalls: when 16 LDS operations have been issued, the first has returned.
        (LDS.format(1) + "".join(LDS.format(n) for n in range(30, 44)) + USE.format(1), "lgkmcnt(14)"),
        (LDS.format(1) + "".join(LDS.format(n) for n in range(30, 45)) + USE.format(1), ""),
    ],
)
def test_what_a_wait_proves(text: str, missing: str, tmp_path: Path) -> None:
    outcome, _ = _run(text, tmp_path)
    assert [(fault.kind, fault.missing) for fault in outcome.faults] == ([("wait", missing)] if missing else [])


def test_a_fault_names_the_load_the_use_and_the_kernel(tmp_path: Path) -> None:
    outcome, _ = _run(VM.format(1) + USE.format(1), tmp_path)
    (fault,) = outcome.faults
    assert fault.kernel == "k"
    assert fault.use.text == "v_mov_b32_e32 v9, v1"
    assert fault.cause is not None and fault.cause.text.startswith("global_load_dword v1")
    assert fault.detail == "v1"
    assert "vmcnt(0)" in str(fault)


@pytest.mark.parametrize(("wait", "arrived"), [("s_waitcnt vmcnt(0)\n", True), ("", False)])
def test_late_delivery_shows_what_a_missing_wait_does(wait: str, arrived: bool, tmp_path: Path) -> None:
    text = VM.format(1) + wait + "global_store_dword v0, v1, s[4:5] offset:4\n"
    _, data = _run(text, tmp_path, late=True)
    assert bool(data[5] == 4) is arrived
    _, data = _run(text, tmp_path)
    assert data[5] == 4


def test_registers_that_nobody_wrote_may_not_be_stored(tmp_path: Path) -> None:
    outcome, _ = _run("v_add_u32 v3, v2, v0\nglobal_store_dword v0, v3, s[4:5]\n", tmp_path)
    assert [(fault.kind, fault.detail) for fault in outcome.faults] == [("uninitialized", "v3")]


def test_an_access_out_of_bounds_is_told_after_any_number_of_missing_waits(tmp_path: Path) -> None:
    outcome, _ = _run((VM.format(1) + USE.format(1)) * 80 + "global_store_dword v0, v0, s[4:5] offset:4092\n", tmp_path)
    kinds = [fault.kind for fault in outcome.faults]
    assert kinds.count("wait") > 60 and kinds.count("out_of_bounds") == 1


@pytest.mark.parametrize(
    ("text", "used"),
    [
        (VM.format(1) + "s_waitcnt vmcnt(0)\n" + USE.format(1), [True]),
        # Nothing was in flight, or nothing that the wait is for.
        ("s_waitcnt vmcnt(0)\n", [False]),
        (LDS.format(1) + "s_waitcnt vmcnt(0)\n", [False]),
        (VM.format(1) + "s_waitcnt vmcnt(1)\n" + USE.format(2), [False]),
        # What it proves is never touched, or only after another wait that proves it as well.
        (VM.format(1) + "s_waitcnt vmcnt(0)\n", [False]),
        (VM.format(1) + "s_waitcnt vmcnt(0)\ns_waitcnt vmcnt(0)\n" + USE.format(1), [False, True]),
        (VM.format(1) + "s_waitcnt vmcnt(0)\n" + VM.format(2) + "s_waitcnt vmcnt(1)\n" + USE.format(1), [False, True]),
        # The later one is for younger loads alone.
        (VM.format(1) + "s_waitcnt vmcnt(0)\n" + VM.format(2) + "s_waitcnt vmcnt(2)\n" + USE.format(1), [True, False]),
        (LDS.format(1) + "s_waitcnt lgkmcnt(0)\ns_waitcnt vmcnt(0)\n" + USE.format(1), [True, False]),
        (SCALAR.format(6) + "s_waitcnt lgkmcnt(0)\ns_waitcnt lgkmcnt(1)\n" + SCALAR_USE.format(6), [True, False]),
        (FLAT.format(1) + "s_waitcnt vmcnt(0)\ns_waitcnt lgkmcnt(0)\n" + USE.format(1), [True, True]),
        # Another load into the register counts as a use.
        (VM.format(1) + "s_waitcnt vmcnt(0)\n" + VM.format(1) + "s_waitcnt vmcnt(0)\n" + USE.format(1), [True, True]),
        # Of what goes to memory or to LDS others may know.
        (STORE + "s_waitcnt vmcnt(0)\n", [True]),
        ("ds_write_b32 v0, v0\ns_waitcnt lgkmcnt(0)\n", [True]),
    ],
)
def test_which_waits_are_of_use(text: str, used: list[bool], tmp_path: Path) -> None:
    outcome, _ = _run(text, tmp_path)
    assert list(outcome.waits.values())[1:] == used  # the first is of ADDRESS
    assert _run(text, tmp_path, late=True)[0].waits == {}


@pytest.mark.parametrize("late", [False, True])
def test_of_two_loads_into_a_register_the_younger_one_stays(late: bool, tmp_path: Path) -> None:
    loads = "global_load_dwordx2 v[2:3], v0, s[4:5]\nglobal_load_dword v3, v0, s[4:5] offset:12\n"
    store = "s_waitcnt vmcnt(0)\nglobal_store_dwordx2 v0, v[2:3], s[4:5] offset:4\n"
    outcome, data = _run(loads + store, tmp_path, late=late)
    assert not outcome.faults
    first, second = data[:256].reshape(64, 4)[:, 1], data[:256].reshape(64, 4)[:, 2]
    assert (first == np.arange(64) * 4).all() and (second == np.arange(64) * 4 + 3).all()


# Each round sets `next` to zero, a constant of no line, in a register that a load may still own.
ROUNDS = """
#include <hip/hip_runtime.h>
extern "C" __global__ void sums(float* out, const float* in, int n, int columns) {
  __shared__ float tile[16 * 16];
  const int column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int i = 0; i < 16; ++i) {
    float next = 0;
    if (i < n && column < columns && threadIdx.y == 0) {
      next = in[i * columns + column];
    }
    if (threadIdx.y == 0)
      tile[i * 16 + threadIdx.x] = next;
    __syncthreads();
    if (column < columns) {
      sum += tile[i * 16 + threadIdx.x];
    }
    __syncthreads();
  }
  WAIT
  out[threadIdx.y * columns + column] = sum;
}
"""


@pytest.mark.parametrize(("text", "lines"), [("", []), ('asm volatile("s_waitcnt vmcnt(0)");', ["20"])])
def test_a_wait_that_the_compiler_places_before_a_constant_is_not_of_the_source(
    text: str, lines: list[str], tmp_path: Path
) -> None:
    hip_or_skip("no wait was looked for")
    program = Program.load(device_code(ROUNDS.replace("WAIT", text), "gfx942", tmp_path))
    assert [program.code.lines[wait].place.rpartition(":")[2] for wait in program.source_waits] == lines
