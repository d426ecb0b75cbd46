"""Numbers of problems as people type them: `3`, `1 40`, `1-8`, `1,4,7`, `1-3,9`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hkbench.errors import UsageError
from hkbench.store.ranges import Range, joined

_PART = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)
FORMS = "write 3, 1-8, 1,4,7 or 1-3,9"


def parse_numbers(words: Sequence[str]) -> tuple[Range, ...]:
    """Return the ranges that `words` name, in order, without overlaps; two plain numbers are the first and the last.

    Raises:
        UsageError: a word is not a number or a range, a range is reversed, a number is 0, or there are three plain
            numbers or more, which may be meant as a list or as a range.
    """
    if len(words) == 2 and all(word.isdecimal() for word in words):
        return (_range(*words),)
    if len(words) > 2 and all(word.isdecimal() for word in words):
        raise UsageError(f"{' '.join(words)}: name a range as FIRST LAST, or a list as {','.join(words)}")
    return joined([_part(part) for word in words for part in word.split(",")])


def without(ranges: Iterable[Range], numbers: Iterable[int]) -> tuple[Range, ...]:
    """Return what is left of `ranges` without these numbers."""
    left = []
    there = sorted(set(numbers))
    for first, last in joined(ranges):
        for number in there:
            if first <= number <= last:
                if first < number:
                    left.append((first, number - 1))
                first = number + 1
        if first <= last:
            left.append((first, last))
    return tuple(left)


def within(ranges: Sequence[Range], number: int) -> bool:
    """Return whether one of `ranges` has the number; no range at all has every number."""
    return not ranges or any(first <= number <= last for first, last in ranges)


def _part(text: str) -> Range:
    found = _PART.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is not the number of a problem or a range of them: {FORMS}")
    return _range(found[1], found[2] or found[1])


def _range(first: str, last: str) -> Range:
    low, high = int(first), int(last)
    if low < 1:
        raise UsageError("problems are numbered from 1 on, not from 0")
    if high < low:
        raise UsageError(f"the range {low} to {high} is empty; give the smaller number first")
    return low, high
