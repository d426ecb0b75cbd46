"""Quotients: the sequence of instructions that LLVM makes of x / y gives the correctly rounded result.

That is a property of v_div_scale, v_div_fmas and v_div_fixup together, which the manual's text leaves open in parts.
"""

from __future__ import annotations

import pytest
from unit.emulator.proof import compare, formats, inputs, machine
from unit.emulator.proof.formats import F32, F64, Format
from unit.emulator.proof.values import mask
from unit.emulator.proof.wave import LANES, Wave

_SINGLE = """v_div_scale_f32 v6, s[0:1], v4, v4, v2
v_div_scale_f32 v8, vcc, v2, v4, v2
v_rcp_f32 v10, v6
v_fma_f32 v12, -v6, v10, 1.0
v_fma_f32 v10, v12, v10, v10
v_mul_f32 v12, v8, v10
v_fma_f32 v14, -v6, v12, v8
v_fma_f32 v12, v14, v10, v12
v_fma_f32 v6, -v6, v12, v8
v_div_fmas_f32 v6, v6, v10, v12
v_div_fixup_f32 v0, v6, v4, v2"""
_DOUBLE = """v_div_scale_f64 v[6:7], s[0:1], v[4:5], v[4:5], v[2:3]
v_rcp_f64 v[8:9], v[6:7]
v_fma_f64 v[10:11], -v[6:7], v[8:9], 1.0
v_fma_f64 v[8:9], v[8:9], v[10:11], v[8:9]
v_fma_f64 v[10:11], -v[6:7], v[8:9], 1.0
v_fma_f64 v[8:9], v[8:9], v[10:11], v[8:9]
v_div_scale_f64 v[10:11], vcc, v[2:3], v[4:5], v[2:3]
v_mul_f64 v[12:13], v[10:11], v[8:9]
v_fma_f64 v[6:7], -v[6:7], v[12:13], v[10:11]
v_div_fmas_f64 v[6:7], v[6:7], v[8:9], v[12:13]
v_div_fixup_f64 v[0:1], v[6:7], v[4:5], v[2:3]"""
_ROUNDS = 60 if inputs.FULL else 12


def _pair(form: Format, turn: int, lane: int) -> tuple[int, int]:
    """Return a numerator and a denominator: edges, and numbers of every size."""
    rng = inputs.generator("quotient", form.width, turn, lane)
    if turn % 3 == 0:
        return rng.choice(inputs.float_edges(form)), rng.choice(inputs.float_edges(form))
    codes = [rng.getrandbits(form.width) for _ in range(2)]
    if turn % 3 == 1:  # near one another
        codes[1] = codes[0] & ~mask(form.fraction_bits) | rng.getrandbits(form.fraction_bits)
    return codes[0], codes[1]


@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
@pytest.mark.parametrize(("form", "program"), [(F32, _SINGLE), (F64, _DOUBLE)], ids=["f32", "f64"])
def test_quotients_are_rounded_correctly(form: Format, program: str, arch: str) -> None:
    for turn in range(_ROUNDS):
        wave = Wave()
        pairs = [_pair(form, turn, lane) for lane in range(LANES)]
        for lane, pair in enumerate(pairs):
            for register, code in zip((2, 4), pair, strict=True):
                wave.vgpr[register, lane] = code & 0xFFFFFFFF
                wave.vgpr[register + 1, lane] = code >> 32
        after = machine.run(arch, program.splitlines(), wave)
        for lane, (x, y) in enumerate(pairs):
            expected = form.encode(formats.divide(form.decode(x), form.decode(y)))
            have = after.vector(0, lane, form.width)
            assert compare.same_codes(form, expected, have), f"{x:#x} / {y:#x} is {have:#x}, expected {expected:#x}"
