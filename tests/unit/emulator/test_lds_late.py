"""Late delivery of what is written to LDS, against the manual's text.

AMD Instinct MI300 ISA: LGKM_CNT is "decremented in order" for LDS operations and counts writes, too; a barrier waits
for waves and not for their memory operations ("S_WAITCNT is required before S_BARRIER"); LDS processes the operations
of one wave in the order in which they were issued.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compilers import hip_or_skip
from support.emulated import assembled, run

from hkbench.emulator.executor import Options, Outcome

pytestmark = pytest.mark.hipcc
# v1: the address of the thread's word, v2: that of its neighbour in the other wave. What is read goes to memory.
START = """
s_load_dwordx2 s[4:5], s[0:1], 0x0
v_lshlrev_b32 v1, 2, v0
v_xor_b32 v2, 0x100, v1
v_mov_b32 v3, 5
v_mov_b32 v8, s3
s_waitcnt lgkmcnt(0)
"""
FIRST = "ds_write_b32 v1, v3\ns_waitcnt lgkmcnt(0)\ns_barrier\n"  # all words are 5
WRITE = "ds_write_b32 v1, v0\n"
ADD = "ds_add_u32 v1, v0\n"
WAIT = "s_waitcnt lgkmcnt(0)\n"
BARRIER = "s_barrier\n"
END = WAIT + "global_store_dword v1, v4, s[4:5]\n"
YOUNGER = "ds_read_b32 v5, v1 offset:512\n"
OTHER, OWN = "ds_read_b32 v4, v2\n", "ds_read_b32 v4, v1\n"


def _run(text: str, folder: Path, arch: str = "gfx942", seed: int | None = None) -> tuple[list[int], Outcome]:
    hip_or_skip("nothing was written to LDS")
    program = assembled(START + text, folder, arch, lds=1024)
    data = np.zeros(128, np.uint32)
    address = data.ctypes.data.to_bytes(8, "little")
    outcome = run(program, (1,), 128, address, [data], options=Options(late=True, seed=seed))
    assert outcome.refusal is None
    return [int(value) for value in data], outcome


NEIGHBOURS = [n ^ 64 for n in range(128)]


def _is_early(values: list[int]) -> bool:
    return [5] * 64 in (values[:64], values[64:])


@pytest.mark.parametrize(
    ("text", "expected", "kinds"),  # None: the wave that comes first finds what was there before
    [
        (FIRST + WRITE + WAIT + BARRIER + OTHER + END, NEIGHBOURS, set()),
        # The barrier does not wait for the writes before it.
        (FIRST + WRITE + BARRIER + OTHER + END, None, {"race"}),
        # In order: a younger operation that has not returned leaves the older one proven.
        (FIRST + WRITE + YOUNGER + "s_waitcnt lgkmcnt(1)\n" + BARRIER + OTHER + END, NEIGHBOURS, set()),
        (FIRST + YOUNGER + WRITE + "s_waitcnt lgkmcnt(1)\n" + BARRIER + OTHER + END, None, {"race"}),
        # A wave's own accesses are in order, and need no wait between them.
        (FIRST + WRITE + OWN + END, list(range(128)), set()),
        (FIRST + WRITE + "ds_write_b32 v1, v3\n" + OWN + END, [5] * 128, set()),
        (FIRST + WRITE + "ds_add_u32 v1, v3\n" + OWN + END, [n + 5 for n in range(128)], set()),
        # An atomic operation changes LDS when a wait proves it, and returns what was there then.
        (FIRST + ADD + WAIT + BARRIER + OTHER + END, [n + 5 for n in NEIGHBOURS], set()),
        (FIRST + ADD + BARRIER + OTHER + END, None, {"race"}),
        (FIRST + ADD + "ds_add_rtn_u32 v4, v1, v3\n" + END, [n + 5 for n in range(128)], set()),
        (FIRST + WRITE + "ds_add_rtn_u32 v4, v1, v3\n" + END, list(range(128)), set()),
        (FIRST + "ds_cmpst_rtn_b32 v4, v1, v3, v0\n" + END, [5] * 128, set()),
        (FIRST + "ds_cmpst_b32 v1, v3, v0\n" + OWN + END, list(range(128)), set()),
        (FIRST + ADD + "ds_write_b32 v1, v3\n" + OWN + END, [5] * 128, set()),
        # vmcnt says nothing of LDS.
        (FIRST + WRITE + "s_waitcnt vmcnt(0)\n" + BARRIER + OTHER + END, None, {"race"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("seed", [None, 3])
def test_when_a_write_arrives(
    text: str, expected: list[int] | None, kinds: set[str], seed: int | None, tmp_path: Path
) -> None:
    values, outcome = _run(text, tmp_path, seed=seed)
    assert _is_early(values) if expected is None else values == expected
    assert {fault.kind for fault in outcome.faults} == kinds


def test_the_sixteenth_write_in_flight_proves_the_first(tmp_path: Path) -> None:
    others = "".join("ds_write_b32 v1, v3 offset:512\n" for _ in range(14))
    values, _ = _run(FIRST + WRITE + others + BARRIER + OTHER + END, tmp_path)
    assert _is_early(values)
    values, _ = _run(FIRST + WRITE + others + "ds_write_b32 v1, v3 offset:512\n" + BARRIER + OTHER + END, tmp_path)
    assert values == NEIGHBOURS


def test_two_waves_that_write_the_same_are_no_race_while_the_writes_are_on_their_way(tmp_path: Path) -> None:
    _, outcome = _run("ds_write_b32 v2, v3\nds_write_b32 v1, v3\n" + WAIT, tmp_path)
    assert outcome.faults == ()


def test_a_flat_store_to_lds_arrives_when_both_counters_say_so(tmp_path: Path) -> None:
    flat = "v_mov_b32 v10, v1\nv_mov_b32 v11, 0x10000\nflat_store_dword v[10:11], v0\n"
    tail = BARRIER + OTHER + END
    values, _ = _run(FIRST + flat + "s_waitcnt lgkmcnt(0)\n" + tail, tmp_path)
    assert _is_early(values)
    values, _ = _run(FIRST + flat + "s_waitcnt vmcnt(0) lgkmcnt(0)\n" + tail, tmp_path)
    assert values == NEIGHBOURS
