"""What a run is going to do, known before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass

from hkbench.lab import Plan
from hkbench.problems import Range
from hkbench.prompts import PromptBook
from hkbench.records import Backend, Problem
from hkbench.strategies import STRATEGIES

DEFAULT_STRATEGY = "reflect"


@dataclass(frozen=True)
class RunPlan:
    """The problems, the prompt of each, and how many calls there can be."""

    problems: tuple[Problem, ...]
    templates: tuple[str, ...]
    missing: tuple[Range, ...]  #: numbers that were named and that no problem has
    strategy: str
    each: Plan  #: for one problem

    @property
    def fewest_calls(self) -> int:
        """When all goes as well as it can, for most strategies: each problem is solved at the first attempt."""
        return len(self.problems) * STRATEGIES[self.strategy].fewest_calls(self.each)

    @property
    def most_calls(self) -> int:
        return len(self.problems) * STRATEGIES[self.strategy].most_calls(self.each)


def make_plan(
    problems: tuple[Problem, ...],
    missing: tuple[Range, ...],
    book: PromptBook,
    backend: Backend,
    each: Plan,
    strategy: str = DEFAULT_STRATEGY,
) -> RunPlan:
    names = tuple(book.choose(problem.name, backend) for problem in problems)
    return RunPlan(problems, names, missing, strategy, each)
