"""Values to try: the edges of each type, and drawn ones. Seeds are names, so that a failure comes again."""

from __future__ import annotations

import functools
import os
import random
from fractions import Fraction

from unit.emulator.proof.formats import Format
from unit.emulator.proof.values import FORMATS

FULL = os.environ.get("HKBENCH_PROOF") == "full"
GROUPS = 12 if FULL else 3  #: of 64 lanes that a mnemonic is tried on

_NUMBERS: tuple[str, ...] = (
    "1",
    "2",
    "3",
    "0.5",
    "1.5",
    "2.5",
    "3.5",
    "0.75",
    "1/3",
    "127.5",
    "255",
    "256",
    "32767",
    "65504",
    "65535",
)
_NUMBERS += ("16777217", "2147483647", "2147483648", "4294967295", "4294967296", "1/16777216", "10000000000000000000")
_SHIFTS = (0, 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127)


def generator(*names: object) -> random.Random:
    """Return a source of random numbers that these names seed."""
    return random.Random(" ".join(map(str, names)))


@functools.cache
def float_edges(form: Format) -> list[int]:
    """Return codes at which a floating-point operation may go wrong."""
    one = form.bias << form.fraction_bits
    codes = [0, 1, 2, (1 << form.fraction_bits) - 1, 1 << form.fraction_bits, (1 << form.fraction_bits) + 1]
    codes += [form.largest, form.largest - 1, form.infinity, form.nan, form.nan | 1, form.infinity + 1]
    codes += [one - 1, one + 1, (1 << form.fraction_bits) * 24, form.largest // 2]
    codes += [form.round(Fraction(text)) for text in _NUMBERS]
    return sorted({code | sign for code in codes for sign in (0, form.sign_bit)})


@functools.cache
def integer_edges(width: int) -> list[int]:
    """Return integers at which a carry, a sign or a shift may go wrong."""
    top = 1 << (width - 1)
    near = [top + d for d in (-2, -1, 0, 1, 2)] + [(1 << width) - d for d in (1, 2, 3)]
    small = [value for value in _SHIFTS if value < 1 << width]
    parts = [int("0f" * (width // 8), 16), int("55" * (width // 8), 16), int("80" * (width // 8), 16)]
    return sorted({*near, *small, *parts, 255, 256, 65535 % (1 << width)})


def draw(kind: str, width: int, rng: random.Random) -> int:
    """Return one value of the type: an edge as often as a drawn one."""
    form = FORMATS.get((kind, width))
    if form is None:
        return rng.choice(integer_edges(width)) if rng.random() < 0.5 else rng.getrandbits(width)
    choice = rng.random()
    if choice < 0.5:
        return rng.choice(float_edges(form))
    if choice < 0.6:
        return rng.getrandbits(form.width)
    exponent = form.bias + rng.randint(-6, 6)  # near one another, so that sums cancel and round
    return rng.getrandbits(1) << (form.width - 1) | exponent << form.fraction_bits | rng.getrandbits(form.fraction_bits)


def filled(kind: str, element: int, width: int, rng: random.Random) -> int:
    """Return as many values of the type as `width` bits hold."""
    element = max(16, element)
    return sum(draw(kind, element, rng) << at for at in range(0, max(width, element), element)) & ((1 << width) - 1)
