"""Overriding a problem's constants."""

from __future__ import annotations

from pathlib import Path

import pytest

from hkbench.errors import ProblemError
from hkbench.problems import SHIPPED, apply_sizes, find_problems, load_problem
from hkbench.records import SizeSet


def test_functions_see_the_new_constants(tmp_path: Path) -> None:
    path = tmp_path / "1_A.py"
    path.write_text(
        "rows = 4096\ncolumns = 7\nCPU_SIZES = {'rows': 64}\nclass Model: ...\n"
        "def get_inputs(): return [rows, columns]\ndef get_init_inputs(): return []\n"
    )
    problem = load_problem(path)
    space: dict[str, object] = {}
    exec(problem.source, space)
    get_inputs = space["get_inputs"]
    assert callable(get_inputs)
    apply_sizes(space, SizeSet.FULL, problem.cpu_sizes)
    assert get_inputs() == [4096, 7]
    apply_sizes(space, SizeSet.CPU, problem.cpu_sizes)
    assert get_inputs() == [64, 7]


@pytest.mark.parametrize("sizes", list(SizeSet))
def test_a_problem_without_cpu_sizes_keeps_its_constants(sizes: SizeSet) -> None:
    space: dict[str, object] = {"rows": 4096}
    apply_sizes(space, sizes, None)
    assert space == {"rows": 4096}


def test_an_unknown_constant_is_named_and_nothing_changes() -> None:
    space: dict[str, object] = {"rows": 4096}
    with pytest.raises(ProblemError, match="CPU_SIZES names columns, depth, which"):
        apply_sizes(space, SizeSet.CPU, {"rows": 1, "depth": 2, "columns": 3})
    assert space == {"rows": 4096}


def test_every_shipped_problem_has_smaller_cpu_sizes() -> None:
    for problem in find_problems(SHIPPED, 1):
        space: dict[str, object] = {}
        constants = [line for line in problem.source.splitlines() if line[:1].islower() and " = " in line]
        exec("\n".join(constants), space)
        full = dict(space)
        apply_sizes(space, SizeSet.CPU, problem.cpu_sizes)
        changed = [name for name in full if full[name] != space[name]]
        assert problem.cpu_sizes is not None
        assert sorted(changed) == sorted(problem.cpu_sizes), problem.name
