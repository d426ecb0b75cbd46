"""Ranges of numbers as text."""

from __future__ import annotations

from hkbench.store.ranges import joined, numbers_text


def test_ranges_that_meet_are_one() -> None:
    assert joined([(4, 5), (1, 2), (3, 3), (2, 2)]) == ((1, 5),)
    assert numbers_text([(9, 12), (1, 2), (3, 4), (6, 7)]) == "1 to 4, 6, 7, 9 to 12"
    assert numbers_text([]) == ""
