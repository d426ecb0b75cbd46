"""Finding the problems of a level."""

from __future__ import annotations

from pathlib import Path

import pytest

from hkbench.errors import InputMissing, ProblemError, UsageError
from hkbench.problems import SHIPPED, find_problems, level_folder, problem_set, problems_root

SOURCE = "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"


def folder(path: Path, *names: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name in names:
        (path / f"{name}.py").write_text(SOURCE)
    return path


def names(root: Path, level: int | None = None) -> list[str]:
    return [problem.name for problem in find_problems(root, level)]


def test_a_problem_knows_its_set(tmp_path: Path) -> None:
    assert problem_set(find_problems(SHIPPED, 1)[0]) == "hkbench"
    for place, name in (("x/KernelBench/level1", "KernelBench"), ("mine/level1", "mine"), ("other", "other")):
        root = folder(tmp_path / place, "1_ReLU")
        assert problem_set(find_problems(root)[0]) == name


class TestRoot:
    def test_the_option_wins_over_the_environment(self, tmp_path: Path) -> None:
        option, environment = folder(tmp_path / "a"), folder(tmp_path / "b")
        assert problems_root(option, {"KERNELBENCH_DIR": str(environment)}) == option
        assert problems_root(None, {"KERNELBENCH_DIR": str(environment)}) == environment

    @pytest.mark.parametrize("environment", [{}, {"KERNELBENCH_DIR": ""}])
    def test_else_the_shipped_problems(self, environment: dict[str, str]) -> None:
        assert problems_root(None, environment) == SHIPPED
        assert len(find_problems(SHIPPED, 1)) == 40

    def test_a_root_that_is_no_folder_says_where_it_came_from(self, tmp_path: Path) -> None:
        with pytest.raises(InputMissing, match=r"nowhere \(KERNELBENCH_DIR\) is not a folder"):
            problems_root(None, {"KERNELBENCH_DIR": str(tmp_path / "nowhere")})
        with pytest.raises(InputMissing, match=r"nowhere \(--problems\) is not a folder"):
            problems_root(tmp_path / "nowhere", {})


class TestFind:
    def test_sorted_by_number_not_by_text(self, tmp_path: Path) -> None:
        folder(tmp_path / "level1", "10_J", "9_I", "1_A", "100_C")
        assert names(tmp_path, 1) == ["1_A", "9_I", "10_J", "100_C"]

    @pytest.mark.parametrize("inner", ["", "KernelBench"])
    def test_a_checkout_and_its_inner_folder(self, tmp_path: Path, inner: str) -> None:
        folder(tmp_path / inner / "level1", "1_A")
        folder(tmp_path / inner / "level2", "1_B", "2_C")
        assert names(tmp_path, 2) == ["1_B", "2_C"]
        assert names(tmp_path) == ["1_A"]

    def test_a_folder_that_holds_the_files_itself(self, tmp_path: Path) -> None:
        mine = folder(tmp_path / "mine", "1_A", "2_B")
        assert names(mine) == names(mine, 3) == ["1_A", "2_B"]

    def test_a_levels_own_folder(self, tmp_path: Path) -> None:
        second = folder(tmp_path / "level2", "1_A")
        assert names(second) == names(second, 2) == ["1_A"]
        with pytest.raises(UsageError, match="holds level 2, but level 1 was asked for"):
            level_folder(second, 1)

    def test_a_missing_level_names_those_there_are(self, tmp_path: Path) -> None:
        folder(tmp_path / "level1", "1_A")
        folder(tmp_path / "level3", "1_A")
        with pytest.raises(InputMissing, match="has no level2; choose --level from 1, 3"):
            find_problems(tmp_path, 2)

    def test_other_files_are_passed_over(self, tmp_path: Path) -> None:
        level = folder(tmp_path / "level1", "1_A", "__init__", "helpers")
        (level / "2_notes.txt").write_text("no problem")
        assert names(tmp_path, 1) == ["1_A"]

    def test_nothing_to_find(self, tmp_path: Path) -> None:
        with pytest.raises(InputMissing, match="holds no problem file"):
            find_problems(folder(tmp_path / "level1", "helpers"))
        with pytest.raises(InputMissing, match="is not a folder"):
            find_problems(tmp_path / "level1" / "helpers.py")

    def test_two_files_of_one_number(self, tmp_path: Path) -> None:
        folder(tmp_path / "level1", "7_A", "07_B")
        with pytest.raises(ProblemError, match=r"07_B\.py and 7_A\.py are both number 7"):
            find_problems(tmp_path, 1)

    def test_a_broken_file_outside_the_range_is_not_read(self, tmp_path: Path) -> None:
        level = folder(tmp_path / "level1", "1_A", "2_B")
        (level / "3_C.py").write_text("def")
        assert [problem.number for problem in find_problems(tmp_path, 1, 1, 2)] == [1, 2]
        with pytest.raises(ProblemError, match=r"3_C\.py"):
            find_problems(tmp_path, 1)
