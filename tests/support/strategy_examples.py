"""What examples/replies/strategies.md says of the replies beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hkbench.llm.replies import replies_in_file
from hkbench.records import Reply

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "replies"
#: What follows the strategy in the heading of its table.
_TITLES = {"cpp": "", "cuda": " in CUDA", "hip": " for hip", "triton": " in Triton"}
BACKENDS = (
    "cpp",
    "cuda",
    "hip",
)  #: of which strategies `judge` and `staged` have replies; `graph` has them for the first
CORRECT = frozenset({"correct", "fast", "slow", "compiled"})  #: labels that are no failure
_ROW = re.compile(r"^\| `(\w+)` \| (\d) \| ([\w-]+) \| `(\w+)` \|", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """A line of a table: a reply, and what it is made to do."""

    problem: str
    attempt: int
    who: str  #: strategy judge: sample_1, judge_1, judge_2; graph: sample_N; staged: the attempt's stage
    label: str  #: one of `CORRECT`, a failure kind, or the form of the judge's answer

    @property
    def judge(self) -> bool:
        return self.who.startswith("judge_")


def rows(strategy: str, backend: str = "cpp") -> list[Row]:
    """Return the lines of a strategy's table, in their order."""
    parts = (EXAMPLES / "strategies.md").read_text(encoding="utf-8").split("\n## ")
    title = f"`{strategy}`{_TITLES[backend]}\n"
    (section,) = (part for part in parts if part.startswith(title))
    return [Row(m[1], int(m[2]), m[3], m[4]) for m in _ROW.finditer(section)]


def name(row: Row) -> str:
    """Return the name of the reply of a line, as the file of its strategy has it."""
    call = row.who if row.judge or row.who.startswith("sample_") else "sample_1"
    return f"{row.problem}/attempt_{row.attempt}/{call}"


@cache
def replies(strategy: str, backend: str = "cpp") -> Mapping[str, Reply]:
    """Read the replies of a strategy, by their names."""
    return replies_in_file(EXAMPLES / f"{strategy}.toml", backend)
