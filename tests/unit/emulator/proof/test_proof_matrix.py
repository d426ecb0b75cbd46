"""Matrix instructions: exact products at the places that AMD's formulas give."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from unit.emulator.proof import formats, machine, matrix
from unit.emulator.proof.formats import Number
from unit.emulator.proof.matrix import SMALL_TYPES, Product
from unit.emulator.proof.wave import Wave

_A, _B, _C, _SCALE_A, _SCALE_B = 0, 16, 32, 80, 81
_MIXED = [m for m in machine.mnemonics() if m.endswith("_f8f6f4")]


def _range(register: int, count: int) -> str:
    return f"v{register}" if count == 1 else f"v[{register}:{register + count - 1}]"


def _text(mnemonic: str, shape: Product, tail: str = "") -> str:
    d = _range(_C, shape.registers("d"))
    return f"{mnemonic} {d}, {_range(_A, shape.registers('a'))}, {_range(_B, shape.registers('b'))}, {d}{tail}"


@pytest.mark.parametrize("mnemonic", [m for m in machine.mnemonics() if matrix.product(m) and m not in _MIXED])
def test_products(mnemonic: str) -> None:
    shape = matrix.product(mnemonic)
    assert shape
    for arch in machine.architectures(mnemonic):
        drawn = matrix.draw(shape, seed=len(mnemonic))
        wave = Wave()
        matrix.load(wave, shape, drawn, (_A, _B, _C), arch)
        after = machine.run(arch, [_text(mnemonic, shape)], wave)
        _assert_product(after, shape, matrix.multiplied(drawn), arch)


def _assert_product(wave: Wave, shape: Product, values: matrix.Matrix, arch: str) -> None:
    for block, i, j in shape.elements():
        have = matrix.get(wave, _C, shape.result, shape.output(block, i, j))
        want = matrix.expected(shape, int(values[block, i, j]), arch)
        assert have == want, f"{arch}: D[{block}][{i}][{j}] is {have:#x}, expected {want:#x}"


@pytest.mark.parametrize("mnemonic", [m for m in _MIXED if "_scale_" not in m])
def test_products_of_types_that_modifiers_choose(mnemonic: str) -> None:
    arch = "gfx950"
    for left, right in itertools.product(SMALL_TYPES, repeat=2):
        shape = matrix.product(mnemonic, left, right)
        assert shape
        drawn = matrix.draw(shape, seed=7)
        wave = Wave()
        matrix.load(wave, shape, drawn, (_A, _B, _C), arch)
        tail = f" cbsz:{SMALL_TYPES.index(left)} blgp:{SMALL_TYPES.index(right)}"
        after = machine.run(arch, [_text(mnemonic, shape, tail)], wave)
        _assert_product(after, shape, matrix.multiplied(drawn), arch)


@pytest.mark.parametrize("mnemonic", [m for m in _MIXED if "_scale_" in m])
def test_scaled_products(mnemonic: str) -> None:
    """Scales are powers of two, one for 32 elements along K, in a byte of a register that `op_sel` picks."""
    arch = "gfx950"
    for left, right in (("fp8", "fp8"), ("fp8", "fp4"), ("fp6", "bf8"), ("fp4", "fp4")):
        shape = matrix.product(mnemonic, left, right)
        assert shape
        drawn = matrix.draw(shape, seed=9)
        rng = np.random.default_rng(3)
        wave = Wave()
        matrix.load(wave, shape, drawn, (_A, _B, _C), arch)
        exponents = rng.integers(125, 130, (2, 64, 4))
        for register, bytes_ in ((_SCALE_A, exponents[0]), (_SCALE_B, exponents[1])):
            wave.vgpr[register] = (bytes_ << np.arange(0, 32, 8)).sum(axis=1).astype(np.uint32)
        pick = (1, 2)
        tail = f", v{_SCALE_A}, v{_SCALE_B} op_sel:[{pick[0] & 1},{pick[1] & 1},0]"
        tail += f" op_sel_hi:[{pick[0] >> 1},{pick[1] >> 1},0]"
        tail += f" cbsz:{SMALL_TYPES.index(left)} blgp:{SMALL_TYPES.index(right)}"
        after = machine.run(arch, [_text(mnemonic, shape, tail)], wave)
        a, b = drawn.a.astype(float), drawn.b.astype(float)
        for k in range(shape.k):
            for i in range(shape.m):
                a[0, i, k] *= 2.0 ** (int(exponents[0][shape.scale(shape.m, i, k), pick[0]]) - 127)
                b[0, k, i] *= 2.0 ** (int(exponents[1][shape.scale(shape.n, i, k), pick[1]]) - 127)
        values = np.matmul(a, b) + drawn.c
        for block, i, j in shape.elements():
            have = matrix.get(after, _C, "f32", shape.output(block, i, j))
            want = formats.F32.round(Fraction(float(values[block, i, j])))
            assert have == want, f"{left} {right}: D[{i}][{j}] is {have:#x}, expected {want:#x}"


def test_an_infinity_and_a_nan_spread_over_their_row_and_column() -> None:
    mnemonic = "v_mfma_f32_16x16x16_f16"
    shape = matrix.product(mnemonic)
    assert shape
    wave = Wave()
    matrix.load(wave, shape, matrix.draw(shape, seed=1), (_A, _B, _C), "gfx942")
    matrix.put(wave, _A, "f16", shape.left(0, 3, 5), formats.F16.nan)
    after = machine.run("gfx942", [_text(mnemonic, shape)], wave)
    for _, i, j in shape.elements():
        number: Number = formats.F32.decode(matrix.get(after, _C, "f32", shape.output(0, i, j)))
        assert number.nan == (i == 3)
