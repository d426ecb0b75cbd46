"""Instruction classes by llvm-objdump's text; test_compiled_kernels.py counts real kernels."""

from __future__ import annotations

import pytest

from hkbench.toolchain.disassembly import count_instructions, instruction_class

TEXT = """
device.elf:\tfile format elf64-amdgpu

Disassembly of section .text:

<_Z5scalePffi>:
\ts_load_dword s3, s[0:1], 0x1c                              // 000000003C00: C00200C0 0000001C
\ts_waitcnt lgkmcnt(0)                                       // 000000003C08: BF8CC07F
\ts_cbranch_execz 12                                         // 000000003C2C: BF88000C <_Z5scalePffi+0x60>
\ts_nop 1                                                    // 000000003C30: BF800001
\tv_mul_f32_e32 v2, s4, v2                                   // 000000003C54: 0A040404
\ts_endpgm                                                   // 000000003C60: BF810000
\ts_nop 0                                                    // 000000003C64: BF800000
\ts_nop 0                                                    // 000000003C68: BF800000
\t\t...

0000000000003d00 <_Z6helperf>:
\ts_setpc_b64 s[30:31]                                       // 000000003D00: BE801D1E
"""


def test_functions_are_counted_apart_and_padding_is_not() -> None:
    kernel = {"valu": 1, "waitcnt": 1, "branch": 1, "scalar_load": 1, "control": 1, "nop": 1}
    assert count_instructions(TEXT) == {"_Z5scalePffi": kernel, "_Z6helperf": {"branch": 1}}
    assert next(iter(count_instructions(TEXT)["_Z5scalePffi"])) == "valu"


def test_the_room_before_the_code_of_a_kernel_with_preloaded_arguments_is_no_instruction() -> None:
    nop = "\ts_nop 0                                                    // 000000003C64: BF800000\n"
    room = TEXT.replace("\ts_cbranch_execz 12", f"\ts_branch 56 // 0\n{nop * 56}\ts_cbranch_execz 12")
    with_room, without = (count_instructions(text)["_Z5scalePffi"] for text in (room, TEXT))
    assert with_room == without | {"branch": 2}


LOAD = "\tbuffer_load_dwordx4 v4, s[4:7], s11 offen lds // 0\n"
SET = "\ts_mov_b32 m0, s12 // 0\n"
NULL = "\ts_mov_b32 m0, -1 // 0\n"


@pytest.mark.parametrize(
    ("code", "lost", "arrive"),
    [
        (SET + LOAD, 0, 1),
        (SET + NULL + LOAD + SET + LOAD, 1, 1),
        (NULL + "\tv_mov_b32 v0, v1 // 0\n" + LOAD + LOAD, 2, 0),
        (NULL + "\ts_add_i32 m0, s3, 0x400 // 0\n" + LOAD, 0, 1),
        (NULL + "\ts_cbranch_scc1 12 // 0\n" + LOAD, 0, 1),
    ],
)
def test_a_load_to_a_null_address_in_lds_does_not_arrive(code: str, lost: int, arrive: int) -> None:
    (counts,) = count_instructions(f"<k>:\n{code}").values()
    found = [counts.get(f"buffer_load_lds_{word}b128", 0) for word in ("lost_", "")]
    assert found == [lost, arrive]


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("v_mfma_f32_32x32x16_bf16 a[0:15], v[0:3], v[4:7], a[0:15]", "mfma_f32_32x32x16_bf16"),
        ("v_smfmac_f32_16x16x32_bf16 v[0:3], v[4:5], v[6:9], v10", "smfmac_f32_16x16x32_bf16"),
        ("v_accvgpr_read_b32 v0, a1", "accvgpr_move"),
        ("v_exp_f32_e32 v0, v0", "transcendental"),
        ("v_rcp_iflag_f32_e32 v0, v0", "transcendental"),
        ("v_frexp_exp_i32_f32_e32 v0, v0", "valu"),
        ("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]", "valu"),
        ("global_load_dwordx4 v[0:3], v[4:5], off", "global_load_b128"),
        ("global_load_short_d16_hi v0, v[4:5], off", "global_load_b16"),
        ("v_wmma_f32_16x16x16_bf16 v[0:7], v[8:11], v[12:15], v[0:7]", "wmma_f32_16x16x16_bf16"),
        ("global_load_b128 v[0:3], v[4:5], off", "global_load_b128"),
        ("global_load_d16_hi_b16 v0, v[4:5], off", "global_load_b16"),
        ("buffer_store_b32 v0, v1, s[0:3], null offen", "buffer_store_b32"),
        ("ds_load_2addr_stride64_b64 v[0:3], v4 offset1:1", "lds_read2_b64"),
        ("ds_store_b128 v4, v[0:3]", "lds_write_b128"),
        ("s_wait_loadcnt 0x0", "waitcnt"),
        ("global_load_sbyte v0, v[4:5], off", "global_load_b8"),
        ("buffer_store_short_d16_hi v0, v1, s[0:3], 0 offen", "buffer_store_b16"),
        ("flat_store_dwordx3 v[0:1], v[2:4]", "flat_store_b96"),
        ("scratch_load_dwordx2 v[0:1], off, s32", "scratch_load_b64"),
        ("global_load_lds_dwordx4 v[0:1], off", "global_load_lds_b128"),
        ("buffer_load_dwordx4 v0, s[0:3], 0 offen lds", "buffer_load_lds_b128"),
        ("buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen", "buffer_load_b128"),
        ("global_atomic_add_f32 v0, v1, s[0:1]", "global_atomic"),
        ("buffer_atomic_pk_add_f16 v0, v1, s[0:3], 0 offen", "buffer_atomic"),
        ("ds_add_rtn_u32 v0, v1, v2", "lds_atomic"),
        ("ds_read_b128 v[0:3], v4 offset:16", "lds_read_b128"),
        ("ds_read2st64_b64 v[0:3], v4 offset1:1", "lds_read2_b64"),
        ("ds_read_b64_tr_b16 v[0:1], v2", "lds_read_tr_b64"),
        ("ds_read_u16_d16_hi v0, v1", "lds_read_b16"),
        ("ds_write_b8 v0, v1", "lds_write_b8"),
        ("ds_bpermute_b32 v0, v1, v2", "lane_permute"),
        ("ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16)", "lane_permute"),
        ("s_waitcnt vmcnt(0)", "waitcnt"),
        ("s_barrier", "barrier"),
        ("s_branch 65510", "branch"),
        ("s_swappc_b64 s[30:31], s[0:1]", "call"),
        ("s_load_dwordx16 s[0:15], s[16:17], 0x0", "scalar_load"),
        ("s_setprio 1", "control"),
        ("s_add_u32 s0, s1, s2", "salu"),
        ("buffer_inv sc1", "cache_control"),
        ("buffer_wbl2 sc1", "cache_control"),
        (".long 0xdeadbeef", "other"),
    ],
)
def test_every_instruction_has_one_class(instruction: str, expected: str) -> None:
    assert instruction_class(instruction) == expected
