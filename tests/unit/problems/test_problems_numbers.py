"""Numbers of problems as people type them."""

from __future__ import annotations

import pytest

from hkbench.errors import UsageError
from hkbench.problems.numbers import parse_numbers, within, without
from hkbench.store.ranges import Range


@pytest.mark.parametrize(
    ("words", "ranges"),
    [
        ("", ()),
        ("3", ((3, 3),)),
        ("1 40", ((1, 40),)),
        ("1-8", ((1, 8),)),
        ("1,4,7", ((1, 1), (4, 4), (7, 7))),
        ("1-3,9", ((1, 3), (9, 9))),
        ("1-3 9", ((1, 3), (9, 9))),
        ("4,1-3,2-6", ((1, 6),)),
        ("7 7", ((7, 7),)),
    ],
)
def test_what_people_type(words: str, ranges: tuple[Range, ...]) -> None:
    assert parse_numbers(words.split()) == ranges


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("4 1", "the range 4 to 1 is empty"),
        ("8-2", "the range 8 to 2 is empty"),
        ("0 3", "from 1 on"),
        ("0", "from 1 on"),
        ("-1 3", "'-1' is not the number of a problem"),
        ("a b", "'a' is not the number of a problem"),
        ("1,,2", "'' is not the number"),
        ("1-", "'1-' is not the number"),
        ("1.5", "'1.5' is not the number"),
        ("²", "'²' is not the number"),
        ("1 4 7", "1,4,7"),
    ],
)
def test_what_is_refused(words: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_numbers(words.split())


def test_differences() -> None:
    assert without([(1, 1_000_000_000)], [1, 2, 40]) == ((3, 39), (41, 1_000_000_000))
    assert without([(1, 3)], [1, 2, 3]) == ()
    assert within((), 5) and within([(1, 5)], 5) and not within([(1, 4)], 5)
