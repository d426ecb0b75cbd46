"""What modifies operands and results: signs, halves, constants, scalar registers, clamping; by exact arithmetic."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from unit.emulator.proof import compare, formats, inputs, machine
from unit.emulator.proof.formats import F16, F32, F64, Format
from unit.emulator.proof.values import mask
from unit.emulator.proof.wave import LANES, Wave

ARCHITECTURES = pytest.mark.parametrize("arch", machine.ARCHITECTURES)
_WORD = mask(32)


def _wave(kind: str, width: int) -> Wave:
    """Return a wave whose v0 to v15 hold values of a type, edges among them."""
    wave, rng = Wave(), inputs.generator("modifiers", kind, width)
    size = max(32, width)
    for register, lane in itertools.product(range(0, 16, size // 32), range(LANES)):
        bits = inputs.filled(kind, width, size, rng)
        for part in range(size // 32):
            wave.vgpr[register + part, lane] = bits >> 32 * part & _WORD
    return wave


def _signed(form: Format, code: int, sign: str) -> int:
    """Apply `|` and `-` to a code."""
    code = code & (form.sign_bit - 1) if "|" in sign else code
    return code ^ form.sign_bit if "-" in sign else code


def _fused(form: Format, *codes: int) -> int:
    return form.encode(formats.fused(*(form.decode(code) for code in codes)))


def _added(form: Format, a: int, b: int) -> int:
    return form.encode(formats.add(form.decode(a), form.decode(b)))


@ARCHITECTURES
def test_signs_of_sources(arch: str) -> None:
    for form, name, step in ((F32, "f32", 1), (F64, "f64", 2), (F16, "f16", 1)):
        before = _wave("f", form.width)
        for signs in itertools.product(("", "-", "|", "-|"), repeat=3):
            registers = [f"v[{r}:{r + 1}]" if step == 2 else f"v{r}" for r in (2, 4, 6)]
            words = [f"{s}{r}{'|' if '|' in s else ''}" for s, r in zip(signs, registers, strict=True)]
            target = "v[20:21]" if step == 2 else "v20"
            after = machine.run(arch, [f"v_fma_{name} {target}, {', '.join(words)}"], before)
            for lane in range(LANES):
                codes = [before.vector(r, lane, form.width) & mask(form.width) for r in (2, 4, 6)]
                want = _fused(form, *(_signed(form, c, s) for c, s in zip(codes, signs, strict=True)))
                have = after.vector(20, lane, form.width) & mask(form.width)
                assert compare.same_codes(form, want, have), (words, lane)


@ARCHITECTURES
def test_constants_and_scalar_registers(arch: str) -> None:
    wave = Wave(m0=0x1234, exec=0xFFFFFFFF_0000FFFF)
    wave.sgpr[4:6] = [0xDEADBEEF, 0x01234567]
    wave.vcc = 0x0000000A_0000000B
    sources = {"64": 64, "-16": -16 & _WORD, "0.5": 0x3F000000, "-4.0": 0xC0800000, "0.15915494": 0x3E22F983}
    sources |= {
        "0xdeadbee5": 0xDEADBEE5,
        "s4": 0xDEADBEEF,
        "m0": 0x1234,
        "vcc_lo": 0xB,
        "vcc_hi": 0xA,
        "exec_lo": 0xFFFF,
    }
    for text, value in sources.items():
        assert int(machine.run(arch, [f"v_mov_b32 v0, {text}"], wave).vgpr[0, 0]) == value, text
    wide = {"-1": mask(64), "64": 64, "1.0": 0x3FF0 << 48, "-0.5": 0xBFE0 << 48, "s[4:5]": 0x01234567_DEADBEEF}
    for text, value in wide.items():
        wave.vgpr[2:4] = 0  # + 0, and fma with 1, leave a double as it is
        after = machine.run(arch, [f"v_lshlrev_b64 v[0:1], 0, {text}"] if "." not in text else [], wave)
        if "." not in text:
            assert after.vector(0, 0, 64) == value, text
        else:
            assert machine.run(arch, [f"v_add_f64 v[0:1], {text}, v[2:3]"], wave).vector(0, 0, 64) == value, text
    wave.vgpr[1] = 0
    assert int(machine.run(arch, ["v_add_f16 v0, 2.0, v1"], wave).vgpr[0, 0]) == 0x4000
    assert machine.run(arch, ["s_add_u32 s0, s4, 0x10000"], wave).sgpr[0] == 0xDEAEBEEF


@ARCHITECTURES
def test_halves_of_packed_operands(arch: str) -> None:
    before = _wave("f", 16)
    for turn in range(12):
        rng = inputs.generator("halves", turn)
        picks = {name: [rng.getrandbits(1) for _ in range(2)] for name in ("op_sel", "op_sel_hi", "neg_lo", "neg_hi")}
        lists = " ".join(f"{name}:[{bits[0]},{bits[1]}]" for name, bits in picks.items())
        after = machine.run(arch, [f"v_pk_add_f16 v20, v2, v4 {lists}"], before)
        for lane, (low, select, negate) in itertools.product(
            range(LANES), ((0, "op_sel", "neg_lo"), (16, "op_sel_hi", "neg_hi"))
        ):
            codes = [
                before.vector(r, lane, 32) >> 16 * pick & 0xFFFF for r, pick in zip((2, 4), picks[select], strict=True)
            ]
            codes = [code ^ sign << 15 for code, sign in zip(codes, picks[negate], strict=True)]
            have = after.vector(20, lane, 32) >> low & 0xFFFF
            assert compare.same_codes(F16, _added(F16, *codes), have), (lists, lane, low)


@ARCHITECTURES
def test_words_of_packed_operands(arch: str) -> None:
    before = _wave("f", 32)
    for turn in range(8):
        rng = inputs.generator("words", turn)
        picks = [[rng.getrandbits(1) for _ in range(3)] for _ in range(2)]
        lists = f"op_sel:{picks[0]} op_sel_hi:{picks[1]}".replace(", ", ",")
        after = machine.run(arch, [f"v_pk_fma_f32 v[20:21], v[2:3], v[4:5], v[6:7] {lists}"], before)
        for lane, half in itertools.product(range(LANES), range(2)):
            codes = [before.vector(r + pick, lane, 32) for r, pick in zip((2, 4, 6), picks[half], strict=True)]
            assert compare.same_codes(F32, _fused(F32, *codes), after.vector(20 + half, lane, 32)), (lists, lane)


@ARCHITECTURES
def test_halves_of_16_bit_instructions(arch: str) -> None:
    before = _wave("f", 16)
    for picks in itertools.product((0, 1), repeat=4):
        after = machine.run(arch, [f"v_fma_f16 v10, v2, v4, v6 op_sel:[{','.join(map(str, picks))}]"], before)
        for lane in range(LANES):
            codes = [
                before.vector(r, lane, 32) >> 16 * pick & 0xFFFF for r, pick in zip((2, 4, 6), picks, strict=False)
            ]
            low = 16 * picks[3]
            word, old = after.vector(10, lane, 32), before.vector(10, lane, 32)
            assert compare.same_codes(F16, _fused(F16, *codes), word >> low & 0xFFFF), (picks, lane)
            assert word & ~(0xFFFF << low) == old & ~(0xFFFF << low), (picks, lane)  # the other half stays


def _clamped_float(a: int, b: int) -> int:
    number = F32.decode(_added(F32, a, b))
    if number.nan or number.negative or number.zero:
        return 0
    return 0x3F800000 if number.infinite or number.value > 1 else F32.encode(number)


@ARCHITECTURES
@pytest.mark.parametrize(
    ("mnemonic", "kind", "expected"),
    [
        ("v_add_f32_e64", "f", _clamped_float),
        ("v_add_u32_e64", "u", lambda a, b: min(a + b, _WORD)),
        ("v_sub_u32_e64", "u", lambda a, b: max(a - b, 0)),
    ],
)
def test_clamped_results(mnemonic: str, kind: str, expected: Callable[[int, int], int], arch: str) -> None:
    before = _wave(kind, 32)
    before.mode |= 0x100  # DX10_CLAMP: a NaN becomes zero
    after = machine.run(arch, [f"{mnemonic} v20, v2, v4 clamp"], before)
    for lane in range(LANES):
        a, b = int(before.vgpr[2, lane]), int(before.vgpr[4, lane])
        assert int(after.vgpr[20, lane]) == expected(a, b), (hex(a), hex(b))


@ARCHITECTURES
def test_denormal_sources_and_results_are_flushed_together(arch: str) -> None:
    before = _wave("f", 32)
    before.mode = 0xC0
    before.vgpr[2, :32] = np.arange(32, dtype=np.uint32) << 19  # around the smallest normal number
    after = machine.run(arch, ["v_mul_f32 v20, v2, v4"], before)

    def flushed(code: int) -> int:
        return code & F32.sign_bit if F32.is_denormal(code) else code

    for lane in range(LANES):
        a, b = (F32.decode(flushed(int(before.vgpr[r, lane]))) for r in (2, 4))
        want = flushed(F32.encode(formats.multiply(a, b)))
        assert compare.same_codes(F32, want, int(after.vgpr[20, lane])), lane
