"""What is read of LDS before anybody wrote it: unknown until something known takes its place.

AMD Instinct MI300 ISA, "Local Data Share": LDS is not initialised, and a workgroup finds there what others left.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compilers import hip_or_skip
from support.emulated import assembled, run

from hkbench.emulator.executor import Options
from hkbench.emulator.faults import Fault

pytestmark = pytest.mark.hipcc
# v0: thread, v1: the address of its word in LDS; s[4:5]: memory.
START = """
s_load_dwordx2 s[4:5], s[0:1], 0x0
v_lshlrev_b32 v1, 2, v0
v_mov_b32 v7, 1.0
s_waitcnt lgkmcnt(0)
"""
WAIT = "s_waitcnt lgkmcnt(0)\n"
READ = "ds_read_b32 v4, v1\n" + WAIT
STORE = "global_store_dword v1, v{0}, s[4:5]\n"
HALF = "s_mov_b64 exec, 0xffffffff\nds_write_b32 v1, v0\ns_mov_b64 exec, -1\n" + WAIT  # lanes 0 to 31
PREFIX = "v_cmp_gt_u32 vcc, 32, v0\n"


def _faults(text: str, folder: Path, arch: str = "gfx942", *, late: bool = False) -> tuple[Fault, ...]:
    hip_or_skip("no LDS was read")
    program = assembled(START + text, folder, arch, lds=1024)
    data = np.zeros(512, np.uint32)
    address = data.ctypes.data.to_bytes(8, "little")
    outcome = run(program, (1,), 64, address, [data], options=Options(late=late))
    assert outcome.refusal is None
    return outcome.faults


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (READ + STORE.format(4), True),
        ("ds_write_b32 v1, v0\n" + WAIT + READ + STORE.format(4), False),
        # Read, and not used.
        (READ + STORE.format(7), False),
        # Half of the lanes' words were written.
        (HALF + READ + STORE.format(4), True),
        (HALF + READ + "s_mov_b64 exec, 0xffffffff\n" + STORE.format(4), False),
        # What is computed of it is unknown, also where the value that stood there made no difference.
        (HALF + READ + "v_add_u32 v5, v4, v0\n" + STORE.format(5), True),
        (HALF + READ + "v_max_f32 v5, v4, v7\n" + STORE.format(5), True),
        # Each lane takes what is known.
        (HALF + PREFIX + READ + "v_cndmask_b32 v5, 0, v4, vcc\n" + STORE.format(5), False),
        (HALF + PREFIX + READ + "v_cndmask_b32 v5, v4, 0, vcc\n" + STORE.format(5), True),
        (READ + "v_and_b32 v5, 0, v4\n" + STORE.format(5), False),
        # Across lanes: lane 0 to 30 take what their neighbours read, lane 31 takes what nobody wrote.
        (HALF + READ + "v_mov_b32_dpp v4, v4 row_newbcast:0\ns_mov_b64 exec, 0xffff\n" + STORE.format(4), False),
        (
            HALF + READ + "v_add_u32 v5, 4, v1\nds_bpermute_b32 v6, v5, v4\n" + WAIT
            + "s_mov_b64 exec, 0x7fffffff\n" + STORE.format(6),
            False,
        ),
        (
            HALF + READ + "v_add_u32 v5, 4, v1\nds_bpermute_b32 v6, v5, v4\n" + WAIT
            + "s_mov_b64 exec, 0xffffffff\n" + STORE.format(6),
            True,
        ),
        (HALF + READ + "v_readlane_b32 s6, v4, 3\nv_mov_b32 v5, s6\n" + STORE.format(5), False),
        (HALF + READ + "v_readlane_b32 s6, v4, 40\nv_mov_b32 v5, s6\n" + STORE.format(5), True),
        # A mask that nobody wrote, carried by compilers through a loop: the lanes that run are taken from it.
        ("s_andn2_b64 s[8:9], s[16:17], exec\nv_cndmask_b32 v5, v7, v0, s[8:9]\n" + STORE.format(5), False),
        ("s_orn2_b64 s[8:9], s[16:17], exec\nv_cndmask_b32 v5, v7, v0, s[8:9]\n" + STORE.format(5), True),
        ("s_and_b32 s8, s16, 0\nv_mov_b32 v5, s8\n" + STORE.format(5), False),
        # Back to LDS, and as an address.
        (READ + "ds_write_b32 v1, v4\n" + WAIT, False),
        (READ + "ds_write_b32 v1, v4\n" + WAIT + READ + STORE.format(4), True),
        (READ + "ds_read_b32 v5, v4\n" + WAIT, True),
        # An atomic operation adds to what is there; an exchange does not.
        ("ds_add_u32 v1, v0\n" + WAIT + READ + STORE.format(4), True),
        ("ds_wrxchg_rtn_b32 v6, v1, v0\n" + WAIT + READ + STORE.format(4), False),
        ("ds_wrxchg_rtn_b32 v6, v1, v0\n" + WAIT + STORE.format(6), True),
        # A load straight into LDS writes it.
        ("s_mov_b32 m0, 0\nglobal_load_lds_dword v1, s[4:5]\ns_waitcnt vmcnt(0)\n" + READ + STORE.format(4), False),
    ],
)  # fmt: skip
def test_what_nobody_wrote_may_not_be_stored(text: str, seen: bool, late: bool, tmp_path: Path) -> None:
    kinds = {fault.kind for fault in _faults(text, tmp_path, late=late)} - {"out_of_bounds"}
    assert kinds == ({"uninitialized"} if seen else set())


def test_the_fault_names_the_read(tmp_path: Path) -> None:
    (fault,) = _faults(READ + "v_add_u32 v5, v4, v0\n" + STORE.format(5), tmp_path)
    assert fault.cause is not None and fault.cause.text.startswith("ds_read_b32 v4")
    assert fault.use.text.startswith("global_store_dword")
    assert fault.detail == "v5"


@pytest.mark.parametrize(("rows", "seen"), [(15, False), (0x7FFF_FFFF_FFFF_FFFF, True)])
def test_a_matrix_product_spoils_the_rows_that_it_reads(rows: int, seen: bool, tmp_path: Path) -> None:
    """Lane l of A holds row l % 16: row 15 is unknown, and comes to registers of lanes 48 to 63 alone."""
    text = "s_mov_b32 s8, 0x7fff7fff\ns_mov_b32 s9, 0x7fff7fff\ns_mov_b64 exec, s[8:9]\nv_mov_b32 v3, 0\n"
    text += "ds_write_b64 v9, v[2:3]\ns_mov_b64 exec, -1\n" + WAIT + "ds_read_b64 v[4:5], v9\n" + WAIT
    text = "v_lshlrev_b32 v9, 3, v0\nv_mov_b32 v2, 0\n" + text
    text += "v_mov_b32 v10, 0\nv_mov_b32 v11, 0\n"
    text += "v_mfma_f32_16x16x16_bf16 v[20:23], v[4:5], v[10:11], 0\ns_nop 15\n"
    text += f"s_mov_b64 exec, {hex(rows) if rows < 1 << 32 else '-1'}\n" + STORE.format(23)
    assert ({fault.kind for fault in _faults(text, tmp_path)} == {"uninitialized"}) is seen
