"""Values of the pseudocode: bits with a type, and the operators on them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from unit.emulator.proof import formats
from unit.emulator.proof.formats import BF16, F16, F32, F64, Format, Number
from unit.emulator.proof.grammar import NotPseudocode

_TYPE = re.compile(r"(bf|fp|[uifb])(\d+)")
FORMATS = {("f", 64): F64, ("f", 32): F32, ("f", 16): F16, ("bf", 16): BF16}


def typed(name: str) -> tuple[str, int] | None:
    """Return the kind and the width of a type's name, `("f", 32)` for `f32`; None where it is none."""
    found = _TYPE.fullmatch(name)
    return (found[1], int(found[2])) if found else None


def mask(width: int) -> int:
    return (1 << width) - 1


@dataclass(frozen=True, slots=True)
class Value:
    """`width` bits of a kind: u and i integers, b bits, f, bf and fp floating point, denormal any denormal number."""

    kind: str
    width: int
    bits: int

    @property
    def format(self) -> Format | None:
        return FORMATS.get((self.kind, self.width))

    @property
    def number(self) -> Number:
        """Return the exact number of a floating-point value."""
        form = self.format
        if form is None:
            raise NotPseudocode(f"{self.kind}{self.width} is not a floating-point type of the arithmetic")
        return form.decode(self.bits)

    @property
    def integer(self) -> int:
        """Return the integer, with its sign where the kind has one."""
        if self.format:
            raise NotPseudocode("a floating-point value stands where an integer is expected")
        if self.kind == "i" and self.bits >> (self.width - 1):
            return self.bits - (1 << self.width)
        return self.bits

    @property
    def true(self) -> bool:
        return self.bits != 0


def integer(value: int, kind: str = "i", width: int = 32) -> Value:
    return Value(kind, width, value & mask(width))


def boolean(value: bool) -> Value:
    return Value("u", 1, int(value))


def floating(number: Number, width: int, kind: str = "f") -> Value:
    return Value(kind, width, FORMATS[kind, width].encode(number))


def converted(value: Value, kind: str, width: int) -> Value:
    """Return the value as another type: rounded between floating-point types, cut or extended between integers.

    Bits or integers that become floating point are taken as its code, as in `32'F(0xffc00000)`.
    """
    target, source = FORMATS.get((kind, width)), value.format
    if target and source:
        if source.is_nan(value.bits):
            return Value(kind, width, _same_nan(value.bits, source, target))
        return floating(value.number, width, kind)
    if target or kind in ("b", "fp", "bf") or source:
        return Value(kind, width, value.bits & mask(width))
    return integer(value.integer, kind, width)


def _same_nan(code: int, source: Format, target: Format) -> int:
    """Keep the upper part of what a NaN carries: a signalling one stays one, which `isSignalNAN(64'F(x))` needs."""
    shift = target.fraction_bits - source.fraction_bits
    payload = code & mask(source.fraction_bits)
    payload = payload << shift if shift >= 0 else payload >> -shift
    return (target.sign_bit if code & source.sign_bit else 0) | target.infinity | (payload or 1)


def _arithmetic(exactly: Callable[[Number, Number], Number], left: Value, right: Value) -> Value:
    wide = left if left.width >= right.width else right
    return floating(exactly(left.number, right.number), wide.width, wide.kind)


def _subtract(left: Number, right: Number) -> Number:
    return formats.add(left, Number(not right.negative, right.magnitude))


_EXACT = {"+": formats.add, "-": _subtract, "*": formats.multiply, "/": formats.divide}


def _shift_left(left: int, right: int) -> int:
    return left << min(right, 4096)


_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": _shift_left,
    ">>": lambda a, b: a >> b,
}
_ORDER: dict[str, Callable[[Fraction | int, Fraction | int], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<>": lambda a, b: a != b,
}


def binary(operator: str, left: Value, right: Value) -> Value:
    """Return `left operator right`."""
    if operator == "&&":
        return boolean(left.true and right.true)
    if operator == "||":
        return boolean(left.true or right.true)
    if operator == "**":
        return _power(left, right)
    if operator in _ORDER:
        return boolean(_compared(operator, left, right))
    if left.format and right.format:
        return _arithmetic(_EXACT[operator], left, right)
    kind, width = _common(left, right, operator)
    return integer(_INTEGERS[operator](left.integer, right.integer), kind, width)


def _common(left: Value, right: Value, operator: str) -> tuple[str, int]:
    """Return the type in which C computes, of at least 32 bits; a shift has that of what is shifted."""
    width = max(32, left.width)
    if operator in ("<<", ">>"):
        return left.kind, width
    width = max(width, right.width)
    unsigned = any(value.kind != "i" and value.width == width for value in (left, right))
    return ("u" if unsigned else "i"), width


def _power(left: Value, right: Value) -> Value:
    """Return a power of two, in the type of the two: `2.0F ** 200` is infinite."""
    if left.number != formats.exact(2):
        raise NotPseudocode("a power of something else than two")
    bounded = max(-5000, min(5000, right.integer))
    return floating(formats.exact(Fraction(2) ** bounded), left.width, left.kind)


def _compared(operator: str, left: Value, right: Value) -> bool:
    if right.kind == "denormal":
        form = left.format
        return form is not None and form.is_denormal(left.bits)
    if not (left.format and right.format):
        return _ORDER[operator](left.integer, right.integer)
    a, b = left.number, right.number
    if a.nan or b.nan:
        return operator == "!="
    return _ORDER[operator](_on_the_line(a), _on_the_line(b))


def _on_the_line(number: Number) -> Fraction:
    """Return a fraction that compares as the number does, infinities too."""
    if number.infinite:
        return Fraction(-(2**1100) if number.negative else 2**1100)
    return number.value


def unary(operator: str, operand: Value) -> Value:
    """Return `operator operand`."""
    if operator == "!":
        return boolean(not operand.true)
    if operator == "~":
        return Value(operand.kind, operand.width, ~operand.bits & mask(operand.width))
    if operator == "+":
        return operand
    if operand.format:
        return Value(operand.kind, operand.width, operand.bits ^ operand.format.sign_bit)
    return integer(-operand.integer, "i", max(32, operand.width))
