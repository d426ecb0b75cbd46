"""What a run is going to do, known before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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

    @property
    def fewest_calls(self) -> int:
        """When each problem is solved at the first attempt."""
        return len(self.problems) * self.samples

    @property
    def most_calls(self) -> int:
        return self.fewest_calls * self.attempts


def make_plan(
    problems: tuple[Problem, ...],
    missing: tuple[int, ...],
    book: PromptBook,
    backend: Backend,
    samples: int,
    attempts: int,
    template: Path | None = None,
) -> RunPlan:
    names = [str(template) if template else book.choose(problem.name, backend) for problem in problems]
    return RunPlan(problems, tuple(names), samples, attempts, missing)
