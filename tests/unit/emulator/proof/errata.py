"""Where the pseudocode is wrong or too vague, with a definition of another origin for each.

- v_max, v_min, v_max3, v_min3, v_med3 of floats: `x == +0.0` holds for -0 too, so of two zeros it takes either. Here -0
  is less than +0: RDNA 3's text of the same instruction, which says so.
- v_rndne: `floor(x + 0.5)` gives +0 for -0.3, and another number for large odd ones. Here IEEE 754's
  roundToIntegralTiesToEven.
- v_ldexp: `2.0F ** n` overflows where the product does not. Here the exact product, rounded once: C's scalbn.
- v_frexp_exp, v_frexp_mant: the field of the exponent says nothing of denormal numbers. Here C's frexp.
- v_fract: `x - floor(x)` rounds to 1 for small negative x. Here it stays below: LLVM selects the instruction for
  min(x - floor(x), 1 - ulp).
- v_sin, v_cos: a product in f32 before the sine. Here the sine of the fraction of a turn, in double precision.
- v_div_fmas: scales by 2**32 or 2**64, and upwards only. Here 2**64 or 2**128 either way, rounded once:
  test_division.py shows that quotients are rounded correctly with these.
- v_div_scale: a large denominator of a small quotient would be scaled up, beyond the largest number, and a quotient
  that is rounded to zero not at all. Here nothing is said of it alone: test_division.py.
- v_div_fixup: UNDERFLOW_F32 has no value, and OVERFLOW_F32 is for `exponent(S1) == 255`, which cannot be there. Here a
  quotient far below the smallest number is zero, and one that came out infinite or as NaN is infinite: the same test.
- DS and atomic min and max of floats: the plain comparison keeps a NaN. Here it loses, and -0 is less than +0: LLVM
  uses them for atomicrmw fmin and fmax, which are minNum and maxNum.
- v_trig_preop: `1201'B(2.0 / PI)` is no number of the text's own types. Here the digits of 2/pi, from integers.
- v_cvt_off_f32_i4: a table without entries. Here a signed nibble in sixteenths, as GCN 3's manual prints it.
- s_bcnt of 64 bits: writes `D0.i32`, and tests `D0.u64`. Here a count of 32 bits, and SCC from it.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from unit.emulator.proof import formats
from unit.emulator.proof.formats import F16, F32, F64, Format, Number
from unit.emulator.proof.values import mask

_WIDTHS: dict[str, Format] = {"f16": F16, "f32": F32, "f64": F64}


@dataclass(frozen=True)
class Case:
    """What one lane of an instruction sees: the bits of its sources and of what the destination held."""

    sources: tuple[int, ...]
    carry: bool
    old: int
    arch: str


Witness = Callable[[Case], int]  #: the bits of D0


def _ordered(form: Format, code: int) -> tuple[Fraction, int]:
    """Return a key by which numbers stand on the line, -0 before +0."""
    number = form.decode(code)
    positive = 0 if number.negative else 1
    if number.infinite:
        return Fraction(2**1100) * (1 if positive else -1), positive
    return number.value, positive


def _two(form: Format, a: int, b: int, largest: bool) -> int:
    """Return the larger or the smaller; a NaN loses (minNum, maxNum), without IEEE mode a signalling one, too."""
    if form.is_nan(a) or form.is_nan(b):
        return b if form.is_nan(a) else a
    pick = max if largest else min
    return pick(a, b, key=functools.partial(_ordered, form))


def _extreme(form: Format, largest: bool) -> Witness:
    def witness(case: Case) -> int:
        chosen = case.sources[0] & mask(form.width)
        for other in case.sources[1:]:
            chosen = _two(form, chosen, other & mask(form.width), largest)
        return chosen

    return witness


def _packed(form: Format, largest: bool) -> Witness:
    def witness(case: Case) -> int:
        low = _extreme(form, largest)(case)
        high = _extreme(form, largest)(Case(tuple(s >> form.width for s in case.sources), False, 0, case.arch))
        return low | high << form.width

    return witness


def _median(form: Format) -> Witness:
    def witness(case: Case) -> int:
        codes = [source & mask(form.width) for source in case.sources]
        if any(form.is_nan(code) for code in codes):
            return _extreme(form, largest=False)(case)
        return sorted(codes, key=functools.partial(_ordered, form))[1]

    return witness


def _on_number(form: Format, function: Callable[[Number, Case], Number | Fraction]) -> Witness:
    """Apply a function to finite numbers that are not zero; the others stay (a NaN as any NaN)."""

    def witness(case: Case) -> int:
        number = form.decode(case.sources[0] & mask(form.width))
        if number.nan or number.infinite or number.zero:
            return form.encode(number)
        result = function(number, case)
        if isinstance(result, Fraction):
            result = formats.exact(result, negative_zero=number.negative)
        return form.encode(result)

    return witness


def _scaled(number: Number, case: Case) -> Fraction:
    power = case.sources[1] & mask(32)
    power -= power >> 31 << 32
    return number.value * Fraction(2) ** max(-5000, min(5000, power))


def _scaled_by_half(number: Number, case: Case) -> Fraction:
    power = case.sources[1] & mask(16)
    power -= power >> 15 << 16
    return number.value * Fraction(2) ** max(-5000, min(5000, power))


def _frexp(value: Fraction) -> tuple[Fraction, int]:
    """Return mantissa and exponent as C's frexp does; exact for every size."""
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    mantissa = value / Fraction(2) ** exponent
    while abs(mantissa) >= 1:
        mantissa, exponent = mantissa / 2, exponent + 1
    while abs(mantissa) < Fraction(1, 2):
        mantissa, exponent = mantissa * 2, exponent - 1
    return mantissa, exponent


def _exponent(form: Format, bits: int) -> Witness:
    def witness(case: Case) -> int:
        number = form.decode(case.sources[0] & mask(form.width))
        if number.nan or number.infinite or number.zero:
            return 0
        return _frexp(number.value)[1] & mask(bits)

    return witness


def _fraction(form: Format) -> Witness:
    below_one = (form.bias << form.fraction_bits) - 1

    def witness(case: Case) -> int:
        number = form.decode(case.sources[0] & mask(form.width))
        if number.nan or number.infinite:
            return form.nan
        return min(form.round(number.value - math.floor(number.value)), below_one)

    return witness


def _turns(form: Format, function: Callable[[float], float]) -> Witness:
    def witness(case: Case) -> int:
        number = form.decode(case.sources[0] & mask(form.width))
        if number.nan or number.infinite:
            return form.nan
        turns = float(number.value - round(number.value))
        result = function(2 * math.pi * turns)
        return form.encode(formats.exact(Fraction(result), negative_zero=number.negative and result == 0))

    return witness


def _div_fmas(form: Format, power: int) -> Witness:
    def witness(case: Case) -> int:
        a, b, c = (form.decode(source & mask(form.width)) for source in case.sources)
        number = formats.fused(a, b, c)
        rounded = form.encode(number)
        if not case.carry or number.zero or rounded & (form.sign_bit - 1) >= form.infinity:
            return rounded
        field = (case.sources[2] & (form.sign_bit - 1)) >> form.fraction_bits
        return form.round(number.value * Fraction(2) ** (power if field > form.bias else -power))

    return witness


def _div_fixup(form: Format) -> Witness:
    """Return the quotient of S2 and S1 where it is special, and S0 with its sign elsewhere.

    A quotient that cannot be other than zero is zero, and one that came out infinite or not at all is infinite.
    """

    def witness(case: Case) -> int:
        found, below, above = (source & mask(form.width) for source in case.sources)
        quotient = formats.divide(form.decode(above), form.decode(below))
        sign = form.sign_bit if quotient.negative else 0
        if quotient.nan or quotient.infinite or quotient.zero:
            return form.encode(quotient)
        fields = [(code & (form.sign_bit - 1)) >> form.fraction_bits for code in (above, below, found)]
        lowest = -(form.bias + form.fraction_bits)
        if form.width > 16 and fields[0] - fields[1] < lowest:
            return sign
        if form.width > 16 and fields[2] == (1 << form.exponent_bits) - 1:
            return sign | form.infinity
        return found & (form.sign_bit - 1) | sign

    return witness


@functools.cache
def _two_over_pi(bits: int) -> int:
    """Return the first bits of the fraction of 2/pi; pi by Machin's formula in integers."""
    scale = 1 << (bits + 64)

    def arctangent(x: int) -> int:
        total, term, n = 0, scale // x, 1
        while term:
            total += term // n if n % 4 == 1 else -(term // n)
            term, n = term // (x * x), n + 2
        return total

    pi = 4 * (4 * arctangent(5) - arctangent(239))
    return (2 * scale * scale // pi) >> 64


def _trig_preop(case: Case) -> int:
    exponent = case.sources[0] >> 52 & 0x7FF
    shift = 53 * (case.sources[1] & 31) + max(0, exponent - 1077)
    digits = _two_over_pi(1201)
    whole = ((digits << shift) >> 1201 - 53) & mask(53)
    return F64.round(Fraction(whole) * Fraction(2) ** (-53 - shift + (128 if exponent >= 1968 else 0)))


def _offset(case: Case) -> int:
    nibble = case.sources[0] & 15
    return F32.round(Fraction(nibble - (nibble >> 3 << 4), 16))


def _count(one: bool) -> Witness:
    return lambda case: case.sources[0].bit_count() if one else 64 - case.sources[0].bit_count()


def _witnesses() -> dict[str, Witness]:
    found: dict[str, Witness] = {
        "v_ldexp_f16": _on_number(F16, _scaled_by_half),
        "v_ldexp_f32": _on_number(F32, _scaled),
        "v_ldexp_f64": _on_number(F64, _scaled),
        "v_frexp_exp_i16_f16": _exponent(F16, 16),
        "v_frexp_exp_i32_f32": _exponent(F32, 32),
        "v_frexp_exp_i32_f64": _exponent(F64, 32),
        "v_div_fixup_f32": _div_fixup(F32),
        "v_div_fixup_f64": _div_fixup(F64),
        "v_div_fmas_f32": _div_fmas(F32, 64),
        "v_div_fmas_f64": _div_fmas(F64, 128),
        "v_trig_preop_f64": _trig_preop,
        "v_cvt_off_f32_i4": _offset,
        "s_bcnt0_i32_b64": _count(False),
        "s_bcnt1_i32_b64": _count(True),
        "v_pk_max_f16": _packed(F16, largest=True),
        "v_pk_min_f16": _packed(F16, largest=False),
    }
    for name, form in _WIDTHS.items():
        for largest, word in ((True, "max"), (False, "min")):
            found[f"v_{word}_{name}"] = found[f"v_{word}3_{name}"] = _extreme(form, largest)
        found[f"v_med3_{name}"] = _median(form)
        found[f"v_rndne_{name}"] = _on_number(form, lambda number, _: Fraction(round(number.value)))
        found[f"v_frexp_mant_{name}"] = _on_number(form, lambda number, _: _frexp(number.value)[0])
        found[f"v_fract_{name}"] = _fraction(form)
        found[f"v_sin_{name}"] = _turns(form, math.sin)
        found[f"v_cos_{name}"] = _turns(form, math.cos)
    return found


WITNESSES = _witnesses()

_ATOMIC = re.compile(r"(?:ds|global_atomic|flat_atomic|buffer_atomic)_(min|max)(?:_rtn)?_f(32|64)")


def atomic_extreme(mnemonic: str) -> tuple[Format, Callable[[int, int], int]] | None:
    """Return the format and the operation of an atomic minimum or maximum of floats."""
    found = _ATOMIC.fullmatch(mnemonic)
    if not found:
        return None
    form = F32 if found[2] == "32" else F64
    return form, lambda old, data: _two(form, old, data, largest=found[1] == "max")


#: Of these the hardware gives an approximation; they are right within so many units in the last place.
ULP = {
    **{f"v_{name}_{form}": 1 for name in ("exp", "log", "rcp", "rsq", "sqrt", "sin", "cos") for form in _WIDTHS},
    "v_rcp_iflag_f32": 1,
    "v_exp_legacy_f32": 1,
    "v_log_legacy_f32": 1,
}
