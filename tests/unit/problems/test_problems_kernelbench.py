"""KernelBench's own files load as they are; needs a checkout named by KERNELBENCH_DIR."""

from __future__ import annotations

import os

import pytest

from hkbench.problems import chosen_problems, find_problems, problems_root

COUNTS = {1: 100, 2: 100, 3: 50, 4: 20}

needs_checkout = pytest.mark.skipif(
    not os.environ.get("KERNELBENCH_DIR"), reason="KERNELBENCH_DIR names no checkout of KernelBench"
)


@needs_checkout
@pytest.mark.parametrize("level", COUNTS)
def test_every_file_of_the_level_loads(level: int) -> None:
    problems = find_problems(problems_root(None, os.environ), level)
    assert len(problems) == COUNTS[level]
    assert {problem.level for problem in problems} == {level}
    chosen = chosen_problems(None, os.environ, level=level, numbers=((1, COUNTS[level]),))
    assert chosen.missing == () and list(chosen.problems) == problems
