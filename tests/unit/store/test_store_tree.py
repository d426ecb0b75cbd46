"""Attempts in the order and with the lines of a tree."""

from __future__ import annotations

from hkbench.records import Layout
from hkbench.store.tree import branches, way_to


def test_each_follows_its_parent() -> None:
    parents = {2: 1, 3: 1, 4: 2, 5: 4, 6: 1}
    drawn = [f"{lines}{attempt}" for attempt, lines in branches([1, 2, 3, 4, 5, 6, 7], parents, Layout.TREE)]
    assert drawn == ["1", "├─ 2", "│  └─ 4", "│     └─ 5", "├─ 3", "└─ 6", "7"]


def test_a_parent_that_is_not_there_or_comes_later_makes_a_root() -> None:
    assert branches([2, 3, 4], {2: 1, 3: 4, 4: 4}, Layout.TREE) == [(2, ""), (3, ""), (4, "")]


def test_a_grid_has_the_order_of_the_numbers() -> None:
    assert branches([3, 1, 2], {3: 1, 2: 1}, Layout.ATTEMPTS) == [(1, ""), (2, ""), (3, "")]


def test_the_way_goes_up_to_a_root_and_no_further() -> None:
    assert way_to(5, {2: 1, 3: 1, 5: 3}) == [1, 3, 5]
    assert way_to(3, {3: 4, 4: 3}) == [3], "a parent that comes later is none"
