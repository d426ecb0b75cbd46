"""Which problems the overview shows, and in which order."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from hkbench.headline import SEPARATOR, plural
from hkbench.records import FailureKind
from hkbench.store.samples import ProblemState
from hkbench.store.sanitize import one_line
from hkbench.store.state import RunState


class Order(StrEnum):
    """Ways to sort the problems."""

    PLAN = "plan"
    BEST = "best"
    NAME = "name"
    STATE = "state"
    CATEGORY = "category"


_NUMBERS = re.compile(r"(\d+)")


@dataclass
class Selection:
    """Order and filters. The pattern is searched for in names, whatever their case."""

    order: Order = Order.PLAN
    pattern: str = ""
    kind: FailureKind | None = None  #: only problems with such a failure
    category: str | None = None  #: only problems of this one

    @property
    def narrow(self) -> bool:
        """Whether it may leave problems out."""
        return bool(self.pattern) or self.kind is not None or self.category is not None

    def search(self, pattern: str) -> None:
        """Take a new pattern; `re.error` when it is none, and then the old one stays."""
        re.compile(pattern)
        self.pattern = pattern

    def kinds(self, state: RunState) -> list[tuple[FailureKind, int, int]]:
        """Return the failure kinds of the run with their samples and problems, the most frequent first."""
        problems = Counter(kind for problem in state.problems.values() for kind in problem.tally.failures)
        return [(kind, count, problems[kind]) for kind, count in state.failures.most_common()]

    def categories(self, state: RunState) -> list[tuple[str, int]]:
        """Return the categories of the run with their problems, the largest first."""
        known = Counter(problem.category for problem in state.problems.values() if problem.category is not None)
        return known.most_common()

    def clear(self) -> None:
        self.pattern, self.kind, self.category = "", None, None

    def names(self, state: RunState) -> list[str]:
        """Return the problems to show, in order."""
        wanted = re.compile(self.pattern, re.IGNORECASE)
        found = [
            (name, problem)
            for name, problem in state.problems.items()
            if wanted.search(name)
            and (self.kind is None or problem.tally.failures[self.kind])
            and (self.category is None or problem.category == self.category)
        ]
        match self.order:
            case Order.BEST:
                found.sort(key=lambda item: -(item[1].best or 0.0))
            case Order.NAME:
                found.sort(key=lambda item: _natural(item[0]))
            case Order.STATE:
                found.sort(key=lambda item: _rank(item[1]))
            case Order.CATEGORY:
                found.sort(key=lambda item: (item[1].category is None, item[1].category or ""))
            case Order.PLAN:
                pass
        return [name for name, _ in found]

    def describe(self, shown: int, of: int) -> str:
        """Return one line: "8 problems in the order of plan"."""
        whole = plural(of, "problem")
        parts = [f"{shown} of {whole}" if shown != of else whole, f"order: {self.order}"]
        if self.pattern:
            parts.append(f"name: {one_line(self.pattern, 40)}")
        if self.kind is not None:
            parts.append(f"failure: {self.kind}")
        if self.category is not None:
            parts.append(f"category: {one_line(self.category, 40)}")
        return SEPARATOR.join(parts)


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key with numbers by their value: 2_Sum before 10_Max."""
    return [(int(part), "") if part.isdecimal() else (0, part.lower()) for part in _NUMBERS.split(name)]


def _rank(problem: ProblemState) -> int:
    """Return what a person looks at first: ended early, running, open, not solved, solved or compiled, not begun."""
    if problem.error is not None:
        return 0
    if problem.running:
        return 1
    if not problem.closed:
        return 2 if problem.started else 5
    return 4 if problem.solved or problem.compiled else 3
