"""Choosing problems by number, name and draw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hkbench.errors import HkbenchError, InputMissing, UsageError
from hkbench.problems import chosen_problems

SOURCE = "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"
Found = tuple[list[int], tuple[tuple[int, int], ...]]


@pytest.fixture
def choose(tmp_path: Path) -> Callable[..., Found]:
    level = tmp_path / "level1"
    level.mkdir()
    for name in ("1_Matmul_a", "2_Softmax", "4_Matmul_b", "9_Sum"):
        (level / f"{name}.py").write_text(SOURCE)
    (level / "20_Broken.py").write_text("def")

    def run(*numbers: tuple[int, int], **more: Any) -> Found:
        found = chosen_problems(tmp_path, {}, numbers=numbers, **more)
        return [problem.number for problem in found.problems], found.missing

    return run


def test_a_range_includes_both_ends_and_reports_holes(choose: Callable[..., Found]) -> None:
    assert choose((2, 6)) == ([2, 4], ((3, 3), (5, 6)))
    assert choose((1, 1), (9, 9)) == ([1, 9], ())


def test_a_file_that_is_not_chosen_is_not_read(choose: Callable[..., Found]) -> None:
    assert choose((1, 19))[0] == [1, 2, 4, 9]
    assert choose(match="Soft") == ([2], ())
    with pytest.raises(InputMissing, match="20_Broken"):
        choose()


def test_match_and_limit_change_nothing_about_what_is_missing(choose: Callable[..., Found]) -> None:
    assert choose((1, 4), match="Mat") == ([1, 4], ((3, 3),))
    assert choose((1, 4), match="^2_|b$") == ([2, 4], ((3, 3),))
    assert choose((1, 9), match="Mat", limit=1) == ([1], ((3, 3), (5, 8)))


def test_a_draw_is_the_same_for_the_same_seed(choose: Callable[..., Found]) -> None:
    drawn = [choose((1, 9), draw=2, seed=seed)[0] for seed in range(12)]
    assert drawn == [choose((1, 9), draw=2, seed=seed)[0] for seed in range(12)]
    assert all(len(one) == 2 and one == sorted(one) for one in drawn) and len(set(map(tuple, drawn))) > 1


@pytest.mark.parametrize(
    ("numbers", "more", "error", "message"),
    [
        ([(1, 9)], {"match": "("}, UsageError, r"--match '\(' is not a valid regular expression"),
        ([(1, 9)], {"match": "Conv"}, UsageError, "no problem of 1, 2, 4, 9 matches --match 'Conv'.*'1_Matmul_a'"),
        ([(50, 60)], {}, InputMissing, "no problem has number 50 to 60: .*level1 has 1, 2, 4, 9, 20"),
        ([(5, 8), (30, 30)], {}, InputMissing, "no problem has number 5 to 8, 30"),
        ([(1, 9)], {"draw": 5}, UsageError, "there are only 4"),
        ([(1, 9)], {"draw": 1, "limit": 1}, UsageError, "give one of them"),
        ([], {"level": 9}, InputMissing, "choose --level from 1"),
    ],
)
def test_errors(
    choose: Callable[..., Found],
    numbers: list[tuple[int, int]],
    more: dict[str, object],
    error: type[HkbenchError],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        choose(*numbers, **more)


def test_one_problems_file_needs_no_choice(tmp_path: Path) -> None:
    path = tmp_path / "7_Mine.py"
    path.write_text(SOURCE)
    assert [one.name for one in chosen_problems(path, {}).problems] == ["7_Mine"]
    with pytest.raises(UsageError, match="leave out"):
        chosen_problems(path, {}, numbers=((1, 2),))
