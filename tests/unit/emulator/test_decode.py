"""The decoder's grammar: what it reads, and that it refuses what it does not know, by name and reason."""

from __future__ import annotations

import shutil

import pytest

from hkbench.emulator.decode import decode
from hkbench.emulator.encode import encode
from hkbench.emulator.listing import BadCodeObject, Line, parse
from hkbench.emulator.operands import Flag, Kind, NotUnderstood, constant
from hkbench.emulator.program import Program
from hkbench.emulator.table import table

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="NO g++, so the executor's table was not read")


def test_registers_signs_and_constants() -> None:
    found = decode("v_fma_f32 v1, -|v2|, s[3], 0.5".replace("s[3]", "s3"), table("gfx942"))
    _, a, b, c = found.slots[:4]
    assert (a.kind, a.index, a.flags) == (Kind.VGPR, 2, Flag.NEG | Flag.ABS)
    assert (b.kind, b.index) == (Kind.SGPR, 3)
    assert (c.kind, c.value) == (Kind.CONSTANT, 0x3F000000)


@pytest.mark.parametrize(
    ("text", "type_", "bits"),
    [
        ("-1", "u64", 0xFFFFFFFFFFFFFFFF),
        ("1.0", "f16", 0x3C00),
        ("0.15915494", "f32", 0x3E22F983),
        ("0x40590000", "f64", 0x4059000000000000),
        ("0x80000000", "b64", 0x80000000),
        ("lit(0x0)", "f32", 0),
    ],
)
def test_constants_are_as_wide_as_their_operand(text: str, type_: str, bits: int) -> None:
    assert constant(text, type_) == bits


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("v_made_up_f32 v0, v1", "v_made_up_f32 is not known"),
        ("v_add_f32_e32 v0, v1", "operands"),
        ("v_add_f32_e32 v0, v1, v256", "no registers v256"),
        ("v_add_f32_e64 v0, v1, v2 mul:2", "output modifier"),
        ("v_add_u32_e64 v0, -v1, v2", "sign"),
        ("v_and_b32_e64 v0, v1, v2 clamp", "clamp"),
        ("v_add_f64 v[0:1], v[2:3], v[4:6]", "3 registers"),
        ("global_load_dword v0, v[2:3], off gds", "gds"),
        ("buffer_load_dword v0, v1, s[0:3], 0 idxen", "idxen"),
        ("v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3] cbsz:1", "cbsz"),
        ("s_waitcnt vscnt(0)", "vscnt"),
        ("s_getreg_b32 s0, hwreg(HW_REG_TRAPSTS)", "TRAPSTS"),
        ("v_mov_b32_dpp v0, v1 row_share:3", "row_share"),
        ("v_pk_mul_f32 v[0:1], v[2:3], 1.0", "upper half"),
    ],
)
def test_what_is_not_known_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(NotUnderstood, match=reason):
        decode(text, table("gfx942"))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("v_pk_mul_f32 v[4:5], v[6:7], v[8:9]", {6, 7, 8, 9}),
        ("v_pk_mul_f32 v[4:5], v[6:7], v[8:9] op_sel_hi:[1,0]", {6, 7, 8}),
        ("v_pk_fma_f32 v[4:5], v[6:7], v[8:9], v[10:11] op_sel:[0,1,0]", {6, 7, 9, 10, 11}),
        ("v_pk_mov_b32 v[4:5], v[6:7], v[8:9] op_sel:[1,0]", {7, 8}),
    ],
)
def test_halves_that_are_not_selected_are_not_read(text: str, read: set[int]) -> None:
    reads = decode(text, table("gfx942")).reads
    assert {n for operand in reads for n in range(operand.index, operand.index + operand.width)} == read


def test_a_branch_to_no_instruction_is_marked() -> None:
    lines = [Line(0, "s_branch 7", (0xBF820007,), "", "k"), Line(4, "s_endpgm", (0xBF810000,), "", "k")]
    code = encode(lines, "gfx950")
    assert any("0x20, where no instruction begins" in reason for reason in code.reasons)


def test_a_listing_gives_each_instruction_its_place() -> None:
    text = (
        "0000000000001600 <kernel>:\n; kernel():\n; /src/a.hip:26\n"
        "\ts_load_dword s18, s[0:1], 0x20                             // 000000001600: C0020480 00000020\n"
        "\ts_cbranch_scc1 10                                          // 000000001608: BF85000A <kernel+0x34>\n"
    )
    first, second = parse(text)
    assert (first.address, first.words, first.place, first.function) == (
        0x1600,
        (0xC0020480, 0x20),
        "/src/a.hip:26",
        "kernel",
    )
    assert second.text == "s_cbranch_scc1 10"


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(58), b"\x7fELF\x02\x01" + b"\xff" * 400]
)
def test_what_is_no_code_object_is_refused(content: bytes) -> None:
    with pytest.raises(BadCodeObject):
        Program.load(content)
