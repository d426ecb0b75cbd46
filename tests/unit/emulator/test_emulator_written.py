"""Which bytes kernels wrote, against a set of numbers."""

from __future__ import annotations

import random

from hkbench.emulator.arena import Range
from hkbench.emulator.written import Written


def test_ranges_are_counted_once_however_they_meet() -> None:
    draw = random.Random(3)
    for _ in range(200):
        written, model = Written(), set()
        for _ in range(draw.randrange(40)):
            begin, size = draw.randrange(500), draw.randrange(60)
            written.add(Range(begin, size))
            model |= set(range(begin, begin + size))
        begin, size = draw.randrange(500), draw.randrange(200)
        assert written.within(Range(begin, size)) == len(model & set(range(begin, begin + size)))


def test_many_pieces_stay_few() -> None:
    written = Written()
    for number in range(100_000):
        written.add(Range(2 * number, 2))
    assert len(written._ranges) < 40_000
    assert written.within(Range(0, 200_000)) == 200_000
