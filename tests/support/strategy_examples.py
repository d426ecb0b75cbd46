"""What examples/strategies/README.md says of its replies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "strategies"
_TITLES = {"cpp": "", "cuda": " in CUDA", "hip": " for hip"}  #: what follows the strategy in the heading of its table
BACKENDS = tuple(_TITLES)
CORRECT = frozenset({"correct", "fast", "slow", "compiled"})  #: labels that are no failure
_ROW = re.compile(r"^\| `(\w+)` \| (\d) \| ([\w-]+) \| `(\w+)` \|", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """A line of a table: a reply, and what it is made to do."""

    problem: str
    attempt: int
    who: str  #: strategy judge: sample_1, judge_1, judge_2; staged: the attempt's stage
    label: str  #: one of `CORRECT`, a failure kind, or the form of the judge's answer

    @property
    def judge(self) -> bool:
        return self.who.startswith("judge_")


def rows(strategy: str, backend: str = "cpp") -> list[Row]:
    """The lines of a strategy's table, in their order."""
    parts = (EXAMPLES / "README.md").read_text(encoding="utf-8").split("\n## ")
    title = f"`{strategy}`{_TITLES[backend]}\n"
    (section,) = (part for part in parts if part.startswith(title))
    return [Row(m[1], int(m[2]), m[3], m[4]) for m in _ROW.finditer(section)]


def response(strategy: str, row: Row, backend: str = "cpp") -> Path:
    """The file of a line."""
    folder = row.who if row.judge else "sample_1"
    return EXAMPLES / strategy / backend / row.problem / f"attempt_{row.attempt}" / folder / "response.txt"


def responses(strategy: str, backend: str = "*") -> list[Path]:
    return sorted((EXAMPLES / strategy).glob(f"{backend}/*/attempt_*/*/response.txt"))
