"""LDS between the waves of a workgroup: what a barrier orders, and what it does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compilers import hip_or_skip
from support.emulated import assembled, run

from hkbench.emulator.executor import Options

pytestmark = pytest.mark.hipcc
# v0: thread, v1: the address of its word, v2: that of its neighbour in the other wave.
START = """
s_load_dwordx2 s[4:5], s[0:1], 0x0
v_lshlrev_b32 v1, 2, v0
v_xor_b32 v2, 0x100, v1
v_mov_b32 v3, 5
s_waitcnt lgkmcnt(0)
"""
WRITE = "ds_write_b32 v1, v0\n"
READ = "ds_read_b32 v4, v2\n"
WAIT = "s_waitcnt lgkmcnt(0)\n"
BARRIER = "s_barrier\n"
DIRECT = "s_mov_b32 m0, 0\nglobal_load_lds_dword v1, s[4:5]\n"


def _kinds(text: str, tmp_path: Path) -> set[str]:
    hip_or_skip("no race was looked for")
    program = assembled(START + text, tmp_path, lds=1024)
    data = np.arange(512, dtype=np.uint32)
    address = data.ctypes.data.to_bytes(8, "little")
    found = set()
    for seed in (None, 1, 2):
        outcome = run(program, (1,), 128, address, [data], options=Options(seed=seed))
        assert outcome.refusal is None
        found |= {f"{fault.kind} {fault.missing}" for fault in outcome.faults}
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (WRITE + WAIT + BARRIER + READ + WAIT, set()),
        (WRITE + WAIT + READ + WAIT, {"race a barrier"}),
        # The barrier alone orders nothing: the write has to be waited for before it.
        (WRITE + BARRIER + READ + WAIT, {"race a barrier"}),
        # Reading, then another wave's write, wants a barrier, too.
        (WRITE + WAIT + BARRIER + READ + WAIT + WRITE.replace("v0", "v3"), {"race a barrier"}),
        (WRITE + WAIT + BARRIER + READ + WAIT + BARRIER + WRITE.replace("v0", "v3"), set()),
        # Two waves that store the same are no race.
        ("ds_write_b32 v2, v3\nds_write_b32 v1, v3\n", set()),
        ("ds_write_b32 v2, v0\nds_write_b32 v1, v0\n", {"race a barrier"}),
        # Atomic operations are none among each other.
        ("v_mov_b32 v6, 0\nds_add_u32 v6, v0\n", set()),
        # A wave may read what it wrote itself.
        ("ds_write_b32 v1, v0\nds_read_b32 v4, v1\ns_waitcnt lgkmcnt(0)\n", set()),
    ],
)
def test_what_a_barrier_orders(text: str, found: set[str], tmp_path: Path) -> None:
    assert _kinds(text, tmp_path) == found


@pytest.mark.parametrize(
    ("between", "found"),
    [
        ("s_waitcnt vmcnt(0)\n" + BARRIER, set()),
        (BARRIER, {"wait vmcnt(0)"}),  # pending across the barrier: the wave's own load
        ("s_waitcnt vmcnt(1)\n" + BARRIER, {"wait vmcnt(0)"}),
        ("", {"wait vmcnt(0)"}),
    ],
)
def test_loads_into_lds_are_pending_until_vmcnt(between: str, found: set[str], tmp_path: Path) -> None:
    hip_or_skip("no load into LDS was executed")
    program = assembled(START + DIRECT + between + "ds_read_b32 v4, v1\n" + WAIT, tmp_path, lds=1024)
    data = np.arange(512, dtype=np.uint32)
    outcome = run(program, (1,), 64, data.ctypes.data.to_bytes(8, "little"), [data])
    assert {f"{fault.kind} {fault.missing}" for fault in outcome.faults} == found


def test_another_waves_load_into_lds_is_not_ordered_by_its_reader_waiting(tmp_path: Path) -> None:
    load = "s_mov_b32 m0, s6\nglobal_load_lds_dword v1, s[4:5]\n"
    setup = "v_readfirstlane_b32 s6, v1\n"
    text = START + setup + load + BARRIER + "s_waitcnt vmcnt(0)\n" + READ + WAIT
    hip_or_skip("no load into LDS was executed")
    data = np.arange(512, dtype=np.uint32)
    program = assembled(text, tmp_path, lds=1024)
    kinds = {fault.kind for fault in run(program, (1,), 128, data.ctypes.data.to_bytes(8, "little"), [data]).faults}
    assert kinds == {"race"}


def test_what_lies_behind_the_end_of_lds_is_a_fault(tmp_path: Path) -> None:
    assert _kinds("v_add_u32 v1, 0x400, v1\nds_write_b32 v1, v0\n", tmp_path) == {"out_of_bounds "}
