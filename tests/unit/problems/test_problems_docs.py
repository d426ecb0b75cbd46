"""The table of docs/problems.md says what the files say."""

from __future__ import annotations

import re
from pathlib import Path

from hkbench.problems import SHIPPED, find_problems

PAGE = Path(__file__).resolve().parents[3] / "docs" / "problems.md"
ROW = re.compile(r"\| (\d+) \| (\S+) \| [^|]+ \| (\S+) \| ([^|]+) \|")


def test_the_table_lists_every_problem_with_its_full_sizes() -> None:
    listed = {
        f"{number}_{name}": (dtype, sizes.strip())
        for number, name, dtype, sizes in ROW.findall(PAGE.read_text(encoding="utf-8"))
    }
    expected = {}
    for problem in find_problems(SHIPPED, 1):
        constants = re.findall(r"^([a-z]\w*) = (\d+)$", problem.source, flags=re.MULTILINE)
        expected[problem.name] = (
            problem.name.rsplit("_", 1)[1],
            ", ".join(f"{name} {value}" for name, value in constants),
        )
    assert listed == expected
