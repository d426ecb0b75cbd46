"""What MODE's bits IEEE and DX10_CLAMP change, against the manual's text.

AMD Instinct MI300 ISA, "MODE register": IEEE: "Floating point opcodes that support exception flag gathering quiet and
propagate signaling NaN inputs per IEEE 754-2008. Min_dx10 and max_dx10 become IEEE 754-2008 compliant due to signaling
NaN propagation and quieting." DX10_CLAMP: "used by the vector ALU to force DX10 style treatment of NaNs: when set,
clamp NaN to zero; otherwise, pass NaN through."
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from support.compilers import hip_or_skip
from support.emulated import assembled, run
from support.emulator_step import LANES, State, StepRefused, step

pytestmark = pytest.mark.hipcc
KEEP, CLAMP, IEEE = 0xF0, 0x100, 0x200
SIGNALLING, QUIET, QUIETED, ONE = 0x7F800001, 0x7FC00002, 0x7FC00001, 0x3F800000


def _stepped(text: str, mode: int, *rows: int) -> int:
    hip_or_skip("no instruction was executed")
    state = State(mode=mode)
    for register, value in enumerate(rows, 1):
        for lane in range(LANES):
            state.vgpr[register * LANES + lane] = value
    return step("gfx942", [text], state).vgpr[9 * LANES + 5]


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize(
    ("mode", "a", "b", "expected"),
    [
        (KEEP | IEEE, SIGNALLING, ONE, QUIETED),
        (KEEP | IEEE, ONE, SIGNALLING, QUIETED),
        (KEEP | IEEE, QUIET, SIGNALLING, QUIETED),
        (KEEP | IEEE, SIGNALLING, SIGNALLING, QUIETED),
        # A quiet one loses, in both modes; without IEEE the other one, too.
        (KEEP | IEEE, QUIET, ONE, ONE),
        (KEEP, QUIET, ONE, ONE),
        (KEEP, SIGNALLING, ONE, ONE),
    ],
)
def test_a_signalling_nan_wins_in_ieee_mode(name: str, mode: int, a: int, b: int, expected: int) -> None:
    assert _stepped(f"v_{name}_f32 v9, v1, v2", mode, a, b) == expected


def test_it_wins_in_doubles_and_with_signs_too() -> None:
    rows = (0x00000003, 0x7FF00000, 0, 0x3FF00000)
    hip_or_skip("no instruction was executed")
    state = State(mode=KEEP | IEEE)
    for register, value in enumerate(rows, 2):
        for lane in range(LANES):
            state.vgpr[register * LANES + lane] = value
    after = step("gfx942", ["v_max_f64 v[8:9], v[4:5], v[2:3]"], state)
    assert (after.vgpr[8 * LANES], after.vgpr[9 * LANES]) == (3, 0x7FF80000)
    assert _stepped("v_max_f32_e64 v9, v1, -v2", KEEP | IEEE, ONE, SIGNALLING) == QUIETED | 1 << 31


def test_lanes_that_are_off_do_not_count() -> None:
    hip_or_skip("no instruction was executed")
    state = State(mode=KEEP | IEEE, exec_=1)
    for lane in range(LANES):
        state.vgpr[LANES + lane] = ONE if lane == 0 else SIGNALLING
    after = step("gfx942", ["v_max3_f32 v9, v1, v1, 0", "v_max_f32 v8, v1, v1"], state)
    assert (after.vgpr[9 * LANES], after.vgpr[8 * LANES], after.vgpr[8 * LANES + 1]) == (ONE, ONE, 0)


@pytest.mark.parametrize("text", ["v_max3_f32 v9, v1, v2, v3", "v_med3_f32 v9, v1, v2, v3"])
def test_three_sources_refuse_a_signalling_nan(text: str) -> None:
    with pytest.raises(StepRefused, match=r"max3|med3"):
        _stepped(text, KEEP | IEEE, ONE, SIGNALLING, ONE)
    _stepped(text, KEEP | IEEE, ONE, QUIET, ONE)


@pytest.mark.parametrize("text", ["v_max_f16 v9, v1, v2", "v_pk_max_f16 v9, v1, v2"])
def test_halves_refuse_a_signalling_nan(text: str) -> None:
    with pytest.raises(StepRefused, match="max_f16"):
        _stepped(text, KEEP | IEEE, 0x3C003C00, 0x7C017C01)
    assert _stepped(text, KEEP | IEEE, 0x3C003C00, 0x7E007E00) & 0xFFFF == 0x3C00


@pytest.mark.parametrize(
    "text", ["v_add_f32 v9, v1, v2 clamp", "v_pk_add_f32 v[8:9], v[0:1], v[0:1] clamp", "v_mul_f32 v9, v1, v2 clamp"]
)
def test_what_nan_is_clamped_to_is_modes(text: str) -> None:
    assert _stepped(text, KEEP | CLAMP, QUIET, ONE) == 0
    value = _stepped(text, KEEP, QUIET, ONE)
    assert np.isnan(struct.unpack("<f", struct.pack("<I", value))[0])


@pytest.mark.parametrize(("ieee", "expected"), [(1, QUIETED), (0, ONE)])
def test_a_kernel_begins_with_its_descriptors_mode(ieee: int, expected: int, tmp_path: Path) -> None:
    hip_or_skip("no kernel was executed")
    text = "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_getreg_b32 s6, hwreg(HW_REG_MODE)\ns_waitcnt lgkmcnt(0)\n"
    text += f"v_mov_b32 v1, {SIGNALLING:#x}\nv_max_f32 v2, 1.0, v1\nv_mov_b32 v3, 0\nv_mov_b32 v4, s6\n"
    text += "global_store_dword v3, v2, s[4:5]\nglobal_store_dword v3, v4, s[4:5] offset:4\n"
    program = assembled(text, tmp_path, directives=f"  .amdhsa_ieee_mode {ieee}\n")
    data = np.zeros(2, np.uint32)
    outcome = run(program, (1,), 64, data.ctypes.data.to_bytes(8, "little"), [data])
    assert outcome.refusal is None
    assert list(data) == [expected, 0xC0 | CLAMP | ieee * IEEE]
