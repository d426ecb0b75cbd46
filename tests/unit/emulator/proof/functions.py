"""The functions that the pseudocode names without giving their text: conversions, parts of numbers, roundings."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from unit.emulator.proof import formats, values
from unit.emulator.proof.evaluator import Builtin, Evaluation
from unit.emulator.proof.formats import F64, Format, Number, Rounding
from unit.emulator.proof.grammar import NotPseudocode
from unit.emulator.proof.values import Value


def _format(value: Value) -> Format:
    form = value.format
    if form is None:
        raise NotPseudocode(f"{value.kind}{value.width} is not floating point")
    return form


def _same(value: Value, number: Number) -> Value:
    return values.floating(number, value.width, value.kind)


def _is_nan(value: Value) -> bool:
    return _format(value).is_nan(value.bits)


def _quiet(value: Value) -> bool:
    return bool(value.bits >> (_format(value).fraction_bits - 1) & 1)


def _exponent(value: Value) -> int:
    form = _format(value)
    return (value.bits & (form.sign_bit - 1)) >> form.fraction_bits


def _to_quiet(value: Value) -> Value:
    return Value(value.kind, value.width, value.bits | 1 << (_format(value).fraction_bits - 1))


def _absolute(value: Value) -> Value:
    return Value(value.kind, value.width, value.bits & (_format(value).sign_bit - 1))


def _on_finite(function: Callable[[Fraction], int]) -> Callable[[Value], Value]:
    """Round to an integer; zero, infinity and NaN stay, and a number that becomes zero keeps its sign."""

    def rounded(value: Value) -> Value:
        number = value.number
        if number.nan or number.infinite or number.zero:
            return value
        return _same(value, formats.exact(function(number.value), negative_zero=number.negative))

    return rounded


_trunc = _on_finite(int)
_floor = _on_finite(math.floor)


def _fract(value: Value) -> Value:
    return values.binary("-", value, _floor(value))


def _is_even(value: Value) -> bool:
    number = value.number
    return not number.nan and not number.infinite and number.value % 2 == 0


def _mantissa(value: Value) -> Value:
    """Return the number with its exponent such that its magnitude is in [0.5, 1)."""
    number = value.number
    if number.zero or number.nan or number.infinite:
        return value
    mantissa, _ = math.frexp(float(number.value)) if value.format is not F64 else _exact_frexp(number.value)
    return _same(value, formats.exact(Fraction(mantissa)))


def _exact_frexp(value: Fraction) -> tuple[Fraction, int]:
    exponent = 0
    while abs(value) >= 1:
        value, exponent = value / 2, exponent + 1
    while abs(value) < Fraction(1, 2):
        value, exponent = value * 2, exponent - 1
    return value, exponent


def _ldexp(value: Value, exponent: Value) -> Value:
    number = value.number
    if number.nan or number.infinite or number.zero:
        return value
    scaled = number.value * Fraction(2) ** max(-5000, min(5000, exponent.integer))
    return _same(value, formats.exact(scaled))


def _by_double(function: Callable[[float], float], poles: dict[str, float]) -> Callable[[Value], Value]:
    """Compute in double precision by the C library, and round to the value's format."""

    def computed(value: Value) -> Value:
        number = value.number
        if number.nan:
            return _same(value, formats.NAN)
        name = ("-" if number.negative else "+") + ("inf" if number.infinite else "0" if number.zero else "")
        if name in poles:
            result = poles[name]
        elif number.infinite:
            result = math.nan
        else:
            result = function(float(number.value))
        return _same(value, _of_double(result))

    return computed


def _of_double(result: float) -> Number:
    if math.isnan(result):
        return formats.NAN
    if math.isinf(result):
        return Number(result < 0, formats.Special.INFINITE)
    return formats.exact(Fraction(result), negative_zero=math.copysign(1, result) < 0)


def _two_to(exponent: float) -> float:
    return 2.0**exponent if exponent < 1024 else math.inf


def _pow(base: Value, exponent: Value) -> Value:
    if base.number != formats.exact(2):
        raise NotPseudocode("pow of something else than two")
    return _by_double(_two_to, {"-inf": 0.0, "+inf": math.inf})(exponent)


_log2 = _by_double(
    lambda x: math.log2(x) if x > 0 else math.nan,
    {"+0": -math.inf, "-0": -math.inf, "+inf": math.inf, "-inf": math.nan},
)


def _to_integer(kind: str, width: int) -> Builtin:
    """Cut to an integer; what is out of range becomes the nearest, NaN zero."""
    low = -(1 << (width - 1)) if kind == "i" else 0
    high = (1 << (width - 1 if kind == "i" else width)) - 1

    def convert(_: Evaluation, arguments: tuple[Value, ...]) -> Value:
        number = arguments[0].number
        if number.nan:
            return values.integer(0, kind, width)
        if number.infinite:
            return values.integer(low if number.negative else high, kind, width)
        return values.integer(max(low, min(high, int(number.value))), kind, width)

    return convert


def _clamped_integer(kind: str, width: int) -> Builtin:
    low = -(1 << (width - 1)) if kind == "i" else 0
    high = (1 << (width - 1 if kind == "i" else width)) - 1
    return lambda _, a: values.integer(max(low, min(high, a[0].integer)), kind, width)


def _normalized(kind: str) -> Builtin:
    """Map [-1, 1] (or [0, 1]) to the integers of 16 bits, nearest even."""
    low, scale = (-1, 32767) if kind == "i" else (0, 65535)

    def convert(_: Evaluation, arguments: tuple[Value, ...]) -> Value:
        number = arguments[0].number
        if number.nan:
            return values.integer(0, kind, 16)
        value = Fraction(low if number.negative else 1) if number.infinite else number.value
        return values.integer(round(max(Fraction(low), min(Fraction(1), value)) * scale), kind, 16)

    return convert


def _from_integer(kind: str, width: int) -> Builtin:
    return lambda _, a: values.floating(formats.exact(a[0].integer), width, kind)


def _between_floats(kind: str, width: int) -> Builtin:
    def convert(evaluation: Evaluation, arguments: tuple[Value, ...]) -> Value:
        value = arguments[0]
        target = _format(Value(kind, width, 0))
        if _is_nan(value):
            return values.converted(_to_quiet(value), kind, width)
        return Value(kind, width, target.encode(value.number, _rounding(evaluation)))

    return convert


def _rounding(evaluation: Evaluation) -> Rounding:
    """Return what ROUND_MODE says; 0 is to nearest even, 3 towards zero."""
    mode = evaluation.cells.get("ROUND_MODE")
    bits = mode.read(0, 2) if mode is not None and hasattr(mode, "read") else 0
    if bits not in (0, 3):
        raise NotPseudocode("a rounding towards infinity")
    return "zero" if bits == 3 else "even"


def small_format(name: str, arch: str) -> Format:
    """Return the format that the pseudocode calls fp8, bf8, fp6, bf6, fp4."""
    small = {"fp6": formats.E2M3, "bf6": formats.E3M2, "fp4": formats.E2M1}
    return small.get(name) or (formats.fp8(arch) if name == "fp8" else formats.bf8(arch))


def _from_small(form: Format) -> Builtin:
    return lambda _, a: values.floating(form.decode(a[0].bits & values.mask(form.width)), 32)


def _to_small(form: Format) -> Builtin:
    def convert(_: Evaluation, arguments: tuple[Value, ...]) -> Value:
        number = arguments[0].number
        if number.nan and form.style != "fnuz":  # of NaNs the one with all bits, and the sign
            return Value("b", form.width, form.sign_bit - 1 | (form.sign_bit if number.negative else 0))
        return Value("b", form.width, form.encode(number))

    return convert


def _float_parts(_: Evaluation, arguments: tuple[Value, ...]) -> Value:
    sign, exponent, mantissa = (argument.bits for argument in arguments)
    return Value("f", 32, (sign & 1) << 31 | (exponent & 0xFF) << 23 | mantissa & 0x7FFFFF)


def _sign_from_bit(_: Evaluation, arguments: tuple[Value, ...]) -> Value:
    """Extend the sign of the lowest `n` bits; none of them is zero, all of them the value itself."""
    value, count = arguments[0], arguments[1].integer
    if count == 0:
        return values.integer(0, value.kind, value.width)
    if count >= value.width:
        return value
    low = value.bits & values.mask(count)
    return values.integer(low - (low >> (count - 1) << count), value.kind, value.width)


def _one(function: Callable[[Value], Value]) -> Builtin:
    return lambda _, a: function(a[0])


def _test(function: Callable[[Value], bool]) -> Builtin:
    return lambda _, a: values.boolean(function(a[0]))


def _fma(_: Evaluation, arguments: tuple[Value, ...]) -> Value:
    return _same(arguments[0], formats.fused(*(argument.number for argument in arguments)))


def _sqrt(value: Value) -> Value:
    return Value(value.kind, value.width, formats.square_root(value.number, _format(value)))


def builtins(arch: str) -> dict[str, Builtin]:
    """Return the functions by their names in the pseudocode, for one architecture."""
    known: dict[str, Builtin] = {
        "isNAN": _test(_is_nan),
        "isQuietNAN": _test(lambda v: _is_nan(v) and _quiet(v)),
        "isSignalNAN": _test(lambda v: _is_nan(v) and not _quiet(v)),
        "isEven": _test(_is_even),
        "cvtToQuietNAN": _one(_to_quiet),
        "exponent": _one(lambda v: values.integer(_exponent(v))),
        "sign": _test(lambda v: bool(v.bits & _format(v).sign_bit)),
        "mantissa": _one(_mantissa),
        "abs": _one(_absolute),
        "trunc": _one(_trunc),
        "floor": _one(_floor),
        "fract": _one(_fract),
        "sqrt": _one(_sqrt),
        "fma": _fma,
        "ldexp": lambda _, a: _ldexp(a[0], a[1]),
        "pow": lambda _, a: _pow(a[0], a[1]),
        "log2": _one(_log2),
        "sin": _one(_by_double(math.sin, {})),
        "cos": _one(_by_double(math.cos, {})),
        "signext": _one(lambda v: values.integer(values.converted(v, "i", v.width).integer, "i", 64)),
        "signext_from_bit": _sign_from_bit,
        "bitCount": _one(lambda v: values.integer(v.bits.bit_count())),
        "s_ff1_i32_b64": _one(lambda v: values.integer((v.bits & -v.bits).bit_length() - 1)),
        "float32": _float_parts,
        "nop": lambda _, a: values.integer(0),
        "f16_to_snorm": _normalized("i"),
        "f32_to_snorm": _normalized("i"),
        "f16_to_unorm": _normalized("u"),
        "f32_to_unorm": _normalized("u"),
        "u32_to_u16": _clamped_integer("u", 16),
        "i32_to_i16": _clamped_integer("i", 16),
    }
    known |= _conversions()
    for name in ("fp8", "bf8"):
        known[f"{name}_to_f32"] = _from_small(small_format(name, arch))
        known[f"f32_to_{name}"] = _to_small(small_format(name, arch))
    return known


def _conversions() -> dict[str, Builtin]:
    found: dict[str, Builtin] = {}
    floats = {"f64": ("f", 64), "f32": ("f", 32), "f16": ("f", 16), "bf16": ("bf", 16)}
    for source in floats:
        for target, kind_width in floats.items():
            found[f"{source}_to_{target}"] = _between_floats(*kind_width)
        for integer in ("i32", "u32", "i16", "u16", "u8"):
            found[f"{source}_to_{integer}"] = _to_integer(integer[0], int(integer[1:]))
            found[f"{integer}_to_{source}"] = _from_integer(*floats[source])
    for width in (4, 8, 16):
        found[f"i{width}_to_i32"] = _one(lambda v: values.integer(values.converted(v, "i", v.width).integer))
        found[f"u{width}_to_u32"] = _one(lambda v: values.integer(v.bits, "u"))
    return found
