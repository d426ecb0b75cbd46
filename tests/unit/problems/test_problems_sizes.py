"""Overriding a problem's constants."""

from __future__ import annotations

from pathlib import Path

import pytest

from hkbench.errors import ProblemError
from hkbench.problems import SHIPPED, apply_sizes, constants_in_force, find_problems, load_problem
from hkbench.problems.sizes import sizes_in_force
from hkbench.records import Problem, SizeSet

CPU = "CPU_SIZES = {'rows': 64}\n"
EMULATED = "EMULATED_SIZES = {'rows': 8}\n"


def written(path: Path, sizes: str) -> Problem:
    path.write_text(
        f"rows = 4096\ncolumns = 7\n{sizes}class Model: ...\n"
        "def get_inputs(): return [rows, columns]\ndef get_init_inputs(): return []\n"
    )
    return load_problem(path)


def inputs_at(problem: Problem, sizes: SizeSet) -> object:
    space: dict[str, object] = {}
    exec(problem.source, space)
    get_inputs = space["get_inputs"]
    assert callable(get_inputs)
    apply_sizes(space, constants_in_force(sizes, problem))
    return get_inputs()


@pytest.mark.parametrize(
    ("named", "rows"),
    [("", (4096, 4096, 4096)), (CPU, (4096, 64, 64)), (EMULATED, (4096, 4096, 8)), (CPU + EMULATED, (4096, 64, 8))],
)
def test_functions_see_the_constants_of_the_sizes_that_the_file_names(
    tmp_path: Path, named: str, rows: tuple[int, ...]
) -> None:
    problem = written(tmp_path / "1_A.py", named)
    for sizes, expected in zip((SizeSet.FULL, SizeSet.CPU, SizeSet.EMULATED), rows, strict=True):
        assert inputs_at(problem, sizes) == [expected, 7]


def test_the_sizes_in_force_are_those_that_a_problem_names(tmp_path: Path) -> None:
    plain, cpu, both = (
        written(tmp_path / f"{number}_A.py", named) for number, named in enumerate(("", CPU, CPU + EMULATED), 1)
    )
    assert sizes_in_force(SizeSet.EMULATED, plain) is SizeSet.FULL
    assert sizes_in_force(SizeSet.EMULATED, plain, cpu) is SizeSet.CPU
    assert sizes_in_force(SizeSet.EMULATED, plain, cpu, both) is SizeSet.EMULATED
    assert sizes_in_force(SizeSet.CPU, plain, both) is SizeSet.CPU
    assert sizes_in_force(SizeSet.CPU, plain) is SizeSet.FULL
    assert sizes_in_force(SizeSet.FULL, cpu, both) is SizeSet.FULL


def test_an_unknown_constant_is_named_and_nothing_changes() -> None:
    space: dict[str, object] = {"rows": 4096}
    with pytest.raises(ProblemError, match="name columns, depth, which"):
        apply_sizes(space, {"rows": 1, "depth": 2, "columns": 3})
    assert space == {"rows": 4096}


@pytest.mark.parametrize("sizes", [SizeSet.CPU, SizeSet.EMULATED])
def test_every_shipped_problem_has_smaller_sizes(sizes: SizeSet) -> None:
    for problem in find_problems(SHIPPED, 1):
        space: dict[str, object] = {}
        constants = [line for line in problem.source.splitlines() if line[:1].islower() and " = " in line]
        exec("\n".join(constants), space)
        full = dict(space)
        assert sizes_in_force(sizes, problem) is sizes, problem.name
        apply_sizes(space, constants_in_force(sizes, problem))
        changed = [name for name in full if full[name] != space[name]]
        assert sorted(changed) == sorted(constants_in_force(sizes, problem)), problem.name
