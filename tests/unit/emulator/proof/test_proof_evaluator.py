"""The evaluator of AMD's pseudocode against NumPy and plain Python, for operations whose meaning nobody doubts."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from unit.emulator.proof import alu, functions, grammar, inputs, pseudocode
from unit.emulator.proof.evaluator import Cell, Evaluation
from unit.emulator.proof.formats import F32
from unit.emulator.proof.wave import Wave

ARCH = "gfx950"
_WORD = 0xFFFFFFFF


def _run(text: str, **cells: Cell) -> Evaluation:
    run = Evaluation(cells, functions.builtins(ARCH))
    run.run(grammar.parse(text))
    return run


def _result(mnemonic: str, *sources: int, width: int = 32) -> int:
    """Return D0 of the mnemonic's pseudocode for these sources."""
    entry = next(iter(pseudocode.entries()[mnemonic].values()))
    cells = {f"S{i}": Cell(source, 64 if source > _WORD else 32) for i, source in enumerate(sources)}
    run = Evaluation({**cells, "D0": Cell(0, width), "SCC": Cell(0, 1)}, pseudocode.known_functions(ARCH))
    run.run(entry.block)
    cell = run.cells["D0"]
    assert isinstance(cell, Cell)
    return cell.bits


def _signed(code: int) -> int:
    return code - (code >> 31 << 32)


def _bits(value: np.float32) -> int:
    return int(value.view(np.uint32))


@pytest.mark.parametrize(
    ("mnemonic", "expected"),
    [
        ("v_add_u32", lambda a, b: a + b & _WORD),
        ("v_mul_hi_u32", lambda a, b: a * b >> 32),
        ("v_mul_hi_i32", lambda a, b: _signed(a) * _signed(b) >> 32 & _WORD),
        ("v_lshlrev_b32", lambda a, b: b << (a & 31) & _WORD),
        ("v_ashrrev_i32", lambda a, b: _signed(b) >> (a & 31) & _WORD),
        ("v_max_i32", lambda a, b: max(_signed(a), _signed(b)) & _WORD),
        ("v_xnor_b32", lambda a, b: ~(a ^ b) & _WORD),
        ("s_absdiff_i32", lambda a, b: abs(_signed((a - b) & _WORD)) & _WORD),
        ("s_bfm_b32", lambda a, b: (1 << (a & 31)) - 1 << (b & 31) & _WORD),
        ("v_bcnt_u32_b32", lambda a, b: (a.bit_count() + b) & _WORD),
    ],
)
def test_integers(mnemonic: str, expected: Callable[[int, int], int]) -> None:
    for a, b in itertools.product(inputs.integer_edges(32), repeat=2):
        assert _result(mnemonic, a, b) == expected(a, b), (mnemonic, hex(a), hex(b))


@pytest.mark.parametrize(
    ("mnemonic", "expected"),
    [
        ("v_add_f32", lambda a, b: a + b),
        ("v_sub_f32", lambda a, b: a - b),
        ("v_mul_f32", lambda a, b: a * b),
        ("v_rcp_f32", lambda a, b: np.float32(1) / a),
        ("v_sqrt_f32", lambda a, b: np.sqrt(a)),
        ("v_floor_f32", lambda a, b: np.floor(a)),
        ("v_ceil_f32", lambda a, b: np.ceil(a)),
        ("v_trunc_f32", lambda a, b: np.trunc(a)),
    ],
)
def test_floats(mnemonic: str, expected: Callable[[np.float32, np.float32], np.float32]) -> None:
    codes = inputs.float_edges(F32)
    with np.errstate(all="ignore"):
        for a, b in itertools.product(codes, codes[::8]):
            x, y = (np.uint32(code).view(np.float32) for code in (a, b))
            result, value = _result(mnemonic, a, b), expected(x, y)
            same = F32.is_nan(result) if np.isnan(value) else result == _bits(value)
            assert same, (mnemonic, hex(a), hex(b), hex(result))


def test_permutes_and_fields() -> None:
    assert _result("v_perm_b32", 0x11223344, 0x55667788, 0x0C0D0700) == 0x00FF1188
    assert _result("v_bfe_i32", 0x0000F000, 12, 4) == _WORD
    assert _result("v_alignbit_b32", 0x1, 0x80000000, 31) == 3
    assert _result("s_brev_b32", 0x00000001) == 0x80000000
    assert _result("s_ff1_i32_b32", 0) == _WORD
    assert _result("v_lshl_add_u64", 1 << 40, 3, 5 << 33, width=64) == (1 << 43) + (5 << 33)


def test_statements_that_few_instructions_use() -> None:
    run = _run(
        "f = lambda(n) ( if n > 3 then return 1'1U else return 1'0U endif ); tmp = 0U;"
        "for i in 0 : 7 do tmp[i] = f(i); if i == 6 then break endif endfor; { hi.u4, lo.u4 } = tmp",
    )
    assert [cell.bits for cell in (run.cells["hi"], run.cells["lo"]) if isinstance(cell, Cell)] == [7, 0]


def test_prose_is_refused() -> None:
    for text in ("SIMM16[3:0] = count (of operations) lower bits,", '"Wait for all"', "x = ;"):
        with pytest.raises(grammar.NotPseudocode):
            grammar.parse(text)
    assert "v_mfma_f32_16x16x16_f16" not in pseudocode.entries()


def test_a_wave_is_changed_in_its_active_lanes_only() -> None:
    entry = pseudocode.entries()["v_addc_co_u32"]["VOP2"]
    instruction = alu.vector(entry, 8, wide=False)
    assert instruction.text == "v_addc_co_u32_e32 v8, vcc, v10, v12, vcc"
    wave = Wave(exec=0b101)
    wave.vcc = 0b110
    wave.vgpr[10, :3], wave.vgpr[12, :3] = _WORD, 0
    alu.apply(wave, instruction, ARCH)
    assert wave.vgpr[8, :3].tolist() == [_WORD, 0, 0]
    assert wave.vcc == 0b100
