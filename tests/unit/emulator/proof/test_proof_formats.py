"""The exact formats against NumPy's and the C library's arithmetic, which know nothing of them."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from unit.emulator.proof import formats
from unit.emulator.proof.formats import BF16, E2M1, E3M2, E4M3, E4M3_FNUZ, E5M2, E5M2_FNUZ, F16, F32, F64, Format


def _codes(form: Format, seed: int, count: int = 400) -> list[int]:
    drawn = np.random.default_rng(seed).integers(0, 1 << min(form.width, 62), count).tolist()
    edges = [0, 1, form.infinity - 1, form.infinity, form.nan, 1 << form.fraction_bits, (1 << form.fraction_bits) - 1]
    return [int(code) for code in drawn] + edges + [edge | form.sign_bit for edge in edges]


def _as_float(code: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", code))[0])


def test_every_half_is_what_numpy_says() -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
    for code, value in enumerate(values.tolist()):
        number = F16.decode(code)
        assert number.nan == math.isnan(value)
        assert number.infinite == math.isinf(value)
        if math.isfinite(value):
            assert number.value == Fraction(value)
            assert F16.encode(number) == code


@pytest.mark.parametrize(("narrow", "dtype", "bits"), [(F32, np.float32, np.uint32), (F16, np.float16, np.uint16)])
def test_narrowing_rounds_as_numpy_does(narrow: Format, dtype: type, bits: type) -> None:
    scale = np.random.default_rng(1).uniform(-30, 30, 4000)
    values = np.random.default_rng(2).normal(size=4000) * 2.0**scale
    with np.errstate(over="ignore"):
        expected = values.astype(dtype).view(bits).tolist()
    assert [narrow.round(Fraction(value)) for value in values.tolist()] == expected


def test_sums_and_products_of_doubles_are_the_machines() -> None:
    codes = _codes(F64, 3)
    with np.errstate(all="ignore"):
        for a, b in zip(codes, reversed(codes), strict=True):
            x, y = np.float64(_as_float(a)), np.float64(_as_float(b))
            for function, result in ((formats.add, x + y), (formats.multiply, x * y), (formats.divide, x / y)):
                code = F64.encode(function(F64.decode(a), F64.decode(b)))
                assert np.isnan(result) if F64.is_nan(code) else code == int(result.view(np.uint64))


def test_fused_products_of_singles_are_those_of_exact_doubles() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 500)).astype(np.float32)
    c = (-(a.astype(np.float64) * b) * (1 + rng.normal(size=500) * 2.0**-30)).astype(np.float32)
    fused = (a.astype(np.longdouble) * b + c).astype(np.float32)  # 64 bits hold a product of 48 and this sum
    for x, y, z, result in zip(a, b, c, fused, strict=True):
        codes = [F32.decode(int(v.view(np.uint32))) for v in (x, y, z)]
        assert F32.encode(formats.fused(*codes)) == int(result.view(np.uint32))


def test_bfloat16_is_the_upper_half_of_a_single_rounded_to_even() -> None:
    for code in _codes(F32, 5):
        if not F32.is_nan(code):
            rounded = (code + 0x7FFF + (code >> 16 & 1)) >> 16
            assert BF16.encode(F32.decode(code)) == rounded


@pytest.mark.parametrize(
    ("form", "largest", "smallest"),
    [
        (E4M3, 448, Fraction(1, 512)),
        (E5M2, 57344, Fraction(1, 65536)),
        (E4M3_FNUZ, 240, Fraction(1, 1024)),
        (E5M2_FNUZ, 57344, Fraction(1, 131072)),
        (E3M2, 28, Fraction(1, 16)),
        (E2M1, 6, Fraction(1, 2)),
    ],
)
def test_small_formats_have_the_range_of_their_definition(form: Format, largest: int, smallest: Fraction) -> None:
    assert form.decode(form.largest).value == largest
    assert form.decode(1).value == smallest
    for code in range(1 << form.width):
        number = form.decode(code)
        if not number.nan and not (form.style == "fnuz" and number.zero):
            assert form.encode(number) == code


def test_what_is_too_large_becomes_nan_without_infinities_and_the_largest_when_asked() -> None:
    huge = formats.exact(-(10**6))
    assert E4M3_FNUZ.encode(huge) == 0x80
    assert E4M3.encode(huge) == 0xFF
    assert E5M2.encode(huge) == 0xFC
    assert E4M3.encode(huge, saturate=True) == 0xFE
    assert F16.encode(huge, rounding="zero") == 0xFBFF
    assert E4M3_FNUZ.round(0, negative_zero=True) == 0
