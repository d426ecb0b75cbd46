"""Ranges of problem numbers, and how they are written."""

from __future__ import annotations

from collections.abc import Iterable

Range = tuple[int, int]  #: from the first number to the last, both included


def joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Return the same numbers in the fewest ranges, in order."""
    found: list[Range] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def numbers_text(ranges: Iterable[Range]) -> str:
    """Return text as "1 to 4, 7, 9, 12 to 14"."""
    return ", ".join(_text(*one) for one in joined(ranges))


def _text(first: int, last: int) -> str:
    if last - first < 2:
        return str(first) if first == last else f"{first}, {last}"
    return f"{first} to {last}"
