"""What a run is going to do, known before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hkbench.problems import Range
from hkbench.prompts import PromptBook
from hkbench.records import BackendName, Problem
from hkbench.strategies import STRATEGIES, Options, Strategy

DEFAULT_STRATEGY = next(iter(STRATEGIES))


@dataclass(frozen=True)
class RunPlan:
    """The problems, the prompt of each, and how many calls there can be."""

    problems: tuple[Problem, ...]
    templates: tuple[str, ...]
    missing: tuple[Range, ...]  #: numbers that were named and that no problem has
    strategy: Strategy[Any]
    options: Options  #: of the strategy

    @property
    def min_calls(self) -> int:
        """Count the model calls when all goes as well as it can."""
        return len(self.problems) * self.strategy.min_calls(self.options)

    @property
    def max_calls(self) -> int:
        return len(self.problems) * self.strategy.max_calls(self.options)


def make_plan(
    problems: tuple[Problem, ...],
    missing: tuple[Range, ...],
    book: PromptBook,
    backend: BackendName,
    strategy: Strategy[Any],
    options: Options,
) -> RunPlan:
    names = tuple(book.choose(problem.name, backend) for problem in problems)
    return RunPlan(problems, names, missing, strategy, options)
