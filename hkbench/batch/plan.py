"""What a run is going to do, known before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass

from hkbench.prompts import PromptBook
from hkbench.records import Backend, Problem

DEFAULT_STRATEGY = "reflect"


@dataclass(frozen=True)
class RunPlan:
    """The problems, the prompt of each, and how many calls there can be."""

    problems: tuple[Problem, ...]
    templates: tuple[str, ...]
    samples: int
    attempts: int
    missing: tuple[int, ...]  #: numbers of the range for which there is no problem
    exhaust: bool = False  #: every attempt is used, also after a success

    @property
    def fewest_calls(self) -> int:
        """When each problem is solved at the first attempt (which ends it, unless the plan exhausts)."""
        return self.most_calls if self.exhaust else len(self.problems) * self.samples

    @property
    def most_calls(self) -> int:
        return len(self.problems) * self.samples * self.attempts


def make_plan(
    problems: tuple[Problem, ...],
    missing: tuple[int, ...],
    book: PromptBook,
    backend: Backend,
    samples: int,
    attempts: int,
    exhaust: bool = False,
) -> RunPlan:
    names = tuple(book.choose(problem.name, backend) for problem in problems)
    return RunPlan(problems, names, samples, attempts, missing, exhaust)
