"""Single instructions, assembled by llvm-mc and executed on one wave."""

from __future__ import annotations

import struct

import pytest
from support.compilers import hip_or_skip
from support.emulator_step import LANES, State, StepRefused, step

pytestmark = pytest.mark.hipcc


@pytest.fixture(autouse=True)
def _compiler() -> None:
    hip_or_skip("no instruction was executed")


def _row(state: State, register: int) -> list[int]:
    return list(state.vgpr[register * LANES : (register + 1) * LANES])


def _fill(state: State, register: int, values: list[int]) -> None:
    for lane, value in enumerate(values):
        state.vgpr[register * LANES + lane] = value


def _bits(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def test_a_vector_addition_writes_active_lanes_only() -> None:
    state = State(exec_=0b101)
    _fill(state, 1, list(range(LANES)))
    after = step("gfx942", ["v_add_u32_e32 v2, 7, v1"], state)
    assert _row(after, 2)[:4] == [7, 0, 9, 0]


def test_signs_and_constants_of_float_operands() -> None:
    state = State()
    _fill(state, 1, [_bits(-3.0)] * LANES)
    after = step("gfx942", ["v_fma_f32 v2, -|v1|, 0.5, 1.0", "v_mul_f32_e64 v3, v1, 4.0 clamp"], state)
    assert _row(after, 2) == [_bits(-0.5)] * LANES
    assert _row(after, 3) == [0] * LANES


def test_scalar_carry_and_branch() -> None:
    text = ["s_mov_b32 s0, -1", "s_add_u32 s1, s0, 1", "s_cbranch_scc0 1", "s_mov_b32 s2, 5", "s_addc_u32 s3, 0, 0"]
    after = step("gfx950", text, State())
    assert (after.sgpr[1], after.sgpr[2], after.sgpr[3], after.scc) == (0, 5, 1, 0)


def test_immediates_of_16_bits_have_the_sign_of_their_mnemonic() -> None:
    text = ["s_movk_i32 s0, 0xff80", "s_cmpk_gt_u32 s0, 0xff80", "s_cselect_b32 s1, 1, 2", "s_addk_i32 s0, 0xffff"]
    after = step("gfx942", text, State())
    assert (after.sgpr[0], after.sgpr[1]) == (0xFFFFFF7F, 1)


def test_a_comparison_sets_a_bit_for_each_active_lane() -> None:
    state = State(exec_=0xFF)
    _fill(state, 1, list(range(LANES)))
    after = step("gfx942", ["v_cmp_gt_u32_e32 vcc, 5, v1"], state)
    assert after.vcc == 0b11111


def test_dpp_and_sdwa_choose_lanes_and_bytes() -> None:
    state = State()
    _fill(state, 1, [lane << 16 | 0xAB for lane in range(LANES)])
    text = [
        "v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0",
        "v_or_b32_sdwa v3, v1, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:BYTE_1",
    ]
    after = step("gfx942", text, state)
    assert _row(after, 2)[:3] == [0, 0xAB, 1 << 16 | 0xAB]
    assert _row(after, 3) == list(range(LANES))


def test_lds_is_read_as_it_was_written() -> None:
    state = State(lds=bytearray(1024))
    _fill(state, 1, [8 * lane for lane in range(LANES)])
    _fill(state, 2, list(range(100, 100 + LANES)))
    _fill(state, 3, list(range(200, 200 + LANES)))
    after = step("gfx942", ["ds_write_b64 v1, v[2:3]", "ds_read2_b32 v[4:5], v1 offset0:1 offset1:2"], state)
    assert _row(after, 4)[:2] == [200, 201]
    assert _row(after, 5)[:2] == [101, 102]


def test_what_is_not_understood_refuses_by_name() -> None:
    with pytest.raises(StepRefused, match=r"v_mfma_f32_16x16x16_f16.*cbsz"):
        step("gfx942", ["v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3] cbsz:1"], State())
    with pytest.raises(StepRefused, match="is not known"):
        step("gfx942", ["s_sendmsg sendmsg(MSG_INTERRUPT)"], State())


def test_code_that_is_skipped_does_not_refuse() -> None:
    step("gfx942", ["s_branch 1", "s_sendmsg sendmsg(MSG_INTERRUPT)"], State())
