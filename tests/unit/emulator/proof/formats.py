"""Number formats of the machine by their definitions, exact: every value is a fraction, rounding happens once.

Nothing here computes in floating point, so a conversion, a sum or a fused product of these functions is what IEEE 754
(and the OCP and FNUZ definitions of the 8-bit formats) asks for, down to the last bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Literal

Rounding = Literal["even", "zero"]


class Special(Enum):
    """What is not a number of the format's line."""

    INFINITE = "infinite"
    NAN = "nan"


@dataclass(frozen=True, slots=True)
class Number:
    """A number of any format: its sign, and its magnitude. Zero keeps its sign."""

    negative: bool
    magnitude: Fraction | Special

    @property
    def nan(self) -> bool:
        return self.magnitude is Special.NAN

    @property
    def infinite(self) -> bool:
        return self.magnitude is Special.INFINITE

    @property
    def zero(self) -> bool:
        return self.magnitude == 0

    @property
    def value(self) -> Fraction:
        """Return the signed fraction of a finite number."""
        assert not isinstance(self.magnitude, Special)
        return -self.magnitude if self.negative else self.magnitude


NAN = Number(False, Special.NAN)


def exact(value: Fraction | int, negative_zero: bool = False) -> Number:
    """Return the number with this value; a zero is negative when asked."""
    return Number(value < 0 or (value == 0 and negative_zero), abs(Fraction(value)))


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format.

    `style` says what the largest exponent means: "ieee" infinities and NaN, "fn" one NaN and no infinity (OCP E4M3),
    "fnuz" numbers only, NaN is the code of negative zero, "finite" numbers only and no NaN at all.
    """

    exponent_bits: int
    fraction_bits: int
    bias: int
    style: Literal["ieee", "fn", "fnuz", "finite"] = "ieee"

    @property
    def width(self) -> int:
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def sign_bit(self) -> int:
        return 1 << (self.width - 1)

    @property
    def lowest_exponent(self) -> int:
        return 1 - self.bias

    @property
    def infinity(self) -> int:
        """The code after the largest finite one, where the style has infinities."""
        return ((1 << self.exponent_bits) - 1) << self.fraction_bits

    @property
    def largest(self) -> int:
        """The code of the largest finite number."""
        every = self.sign_bit - 1
        return {"ieee": self.infinity - 1, "fn": every - 1, "fnuz": every, "finite": every}[self.style]

    @property
    def nan(self) -> int:
        """The code of a quiet NaN."""
        if self.style == "ieee":
            return self.infinity | 1 << (self.fraction_bits - 1)
        assert self.style != "finite", "the format has no NaN"
        return self.sign_bit if self.style == "fnuz" else self.sign_bit - 1

    def is_nan(self, code: int) -> bool:
        magnitude = code & (self.sign_bit - 1)
        return {
            "ieee": magnitude > self.infinity,
            "fn": magnitude == self.sign_bit - 1,
            "fnuz": code == self.sign_bit,
            "finite": False,
        }[self.style]

    def is_denormal(self, code: int) -> bool:
        return 0 < code & (self.sign_bit - 1) < 1 << self.fraction_bits

    def decode(self, code: int) -> Number:
        """Return what the code stands for."""
        negative, magnitude = bool(code & self.sign_bit), code & (self.sign_bit - 1)
        if self.is_nan(code):
            return Number(negative, Special.NAN)
        if self.style == "ieee" and magnitude == self.infinity:
            return Number(negative, Special.INFINITE)
        exponent, fraction = magnitude >> self.fraction_bits, magnitude & ((1 << self.fraction_bits) - 1)
        if exponent:
            fraction += 1 << self.fraction_bits
        scale = max(exponent, 1) - self.bias - self.fraction_bits
        return Number(negative, Fraction(fraction << scale) if scale >= 0 else Fraction(fraction, 1 << -scale))

    def encode(self, number: Number, rounding: Rounding = "even", saturate: bool = False) -> int:
        """Return the code, rounded once; what is too large becomes infinity, NaN or, if asked, the largest."""
        if isinstance(number.magnitude, Special):
            if number.nan:
                return self.nan
            return self._too_large(number.negative, saturate)
        return self._signed(number.negative, self._magnitude(number.magnitude, rounding), rounding, saturate)

    def round(self, value: Fraction | int, negative_zero: bool = False) -> int:
        """Return the code nearest to the value, ties to even."""
        return self.encode(exact(value, negative_zero))

    def _magnitude(self, magnitude: Fraction, rounding: Rounding) -> int:
        above, below = magnitude.numerator, magnitude.denominator
        if above == 0:
            return 0
        exponent = above.bit_length() - below.bit_length()
        if above << max(0, -exponent) < below << max(0, exponent):
            exponent -= 1
        exponent = max(exponent, self.lowest_exponent)
        scale = self.fraction_bits - exponent  # the last place is worth 2**-scale
        whole, rest = divmod(above << max(0, scale), below << max(0, -scale))
        twice = 2 * rest - (below << max(0, -scale))
        if rounding == "even" and (twice > 0 or (twice == 0 and whole & 1)):
            whole += 1
        return ((exponent - self.lowest_exponent) << self.fraction_bits) + whole

    def _signed(self, negative: bool, code: int, rounding: Rounding, saturate: bool) -> int:
        if code > self.largest:
            return self._too_large(negative, saturate or rounding == "zero")
        if code == 0 and self.style == "fnuz":
            return 0
        return code | (self.sign_bit if negative else 0)

    def _too_large(self, negative: bool, saturate: bool) -> int:
        sign = self.sign_bit if negative else 0
        if saturate or self.style == "finite":
            return sign | self.largest
        if self.style == "ieee":
            return sign | self.infinity
        return self.nan if self.style == "fnuz" else sign | self.nan


F64 = Format(11, 52, 1023)
F32 = Format(8, 23, 127)
F16 = Format(5, 10, 15)
BF16 = Format(8, 7, 127)
E4M3_FNUZ = Format(4, 3, 8, "fnuz")
E5M2_FNUZ = Format(5, 2, 16, "fnuz")
E4M3 = Format(4, 3, 7, "fn")
E5M2 = Format(5, 2, 15)
E2M3 = Format(2, 3, 1, "finite")
E3M2 = Format(3, 2, 3, "finite")
E2M1 = Format(2, 1, 1, "finite")


def fp8(arch: str) -> Format:
    """Return the format that the architecture's instructions call fp8."""
    return {"gfx942": E4M3_FNUZ, "gfx950": E4M3}[arch]


def bf8(arch: str) -> Format:
    """Return the format that the architecture's instructions call bf8."""
    return {"gfx942": E5M2_FNUZ, "gfx950": E5M2}[arch]


def add(a: Number, b: Number) -> Number:
    """Return the exact sum; x + -x is positive zero, as rounding to nearest has it."""
    if a.nan or b.nan or (a.infinite and b.infinite and a.negative != b.negative):
        return NAN
    if a.infinite or b.infinite:
        return a if a.infinite else b
    return exact(a.value + b.value, negative_zero=a.negative and b.negative)


def multiply(a: Number, b: Number) -> Number:
    """Return the exact product."""
    negative = a.negative != b.negative
    if a.nan or b.nan or (a.infinite and b.zero) or (a.zero and b.infinite):
        return NAN
    if a.infinite or b.infinite:
        return Number(negative, Special.INFINITE)
    return Number(negative, abs(a.value * b.value))


def divide(a: Number, b: Number) -> Number:
    """Return the exact quotient."""
    negative = a.negative != b.negative
    if a.nan or b.nan or (a.infinite and b.infinite) or (a.zero and b.zero):
        return NAN
    if a.infinite or b.zero:
        return Number(negative, Special.INFINITE)
    return Number(negative, Fraction(0) if b.infinite else abs(a.value / b.value))


def fused(a: Number, b: Number, c: Number) -> Number:
    """Return a * b + c, exact."""
    return add(multiply(a, b), c)


def square_root(a: Number, form: Format) -> int:
    """Return the code of the square root, rounded once to the format, ties to even."""
    if a.nan or (a.negative and not a.zero):
        return form.nan
    if a.infinite or a.zero:
        return form.encode(a)
    scale = 2 * (form.fraction_bits + form.bias + 3)  # far finer than the format's smallest step
    scaled = a.value * 2**scale * 16
    root = math.isqrt(int(scaled))
    inexact = root * root != scaled
    return form.round(Fraction(2 * root + inexact, 2 * 4 * 2 ** (scale // 2)))  # half a step above an inexact root
