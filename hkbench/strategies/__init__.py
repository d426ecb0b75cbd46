"""Strategies: coroutines over a lab. Each decides what to ask next, and nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hkbench.categories import STAGES
from hkbench.lab import Lab, Plan
from hkbench.lab.advice import CALLS
from hkbench.strategies.judge import judge
from hkbench.strategies.reflect import reflect
from hkbench.strategies.staged import TRIES, staged


@dataclass(frozen=True)
class Strategy:
    """A strategy, and what a run with it takes where nothing else is asked for."""

    run: Callable[[Lab, Plan], Awaitable[None]]
    samples: int  #: of an attempt
    attempts: int
    ends_early: bool = True  #: at the first success
    asks_judge: bool = False  #: before each attempt but the first
    staged: bool = False  #: by categories of problems
    profiles_fast: bool = False  #: it works on correct kernels that are fast, too

    def fewest_calls(self, plan: Plan) -> int:
        """Model calls of one problem when all goes well."""
        if self.ends_early and not plan.exhaust:
            return plan.samples
        return plan.samples * plan.attempts + (plan.attempts - 1) * self.asks_judge

    def most_calls(self, plan: Plan) -> int:
        """Model calls of one problem at the most: each answer of a judge unusable at first."""
        return plan.samples * plan.attempts + (plan.attempts - 1) * CALLS * self.asks_judge


STRATEGIES = {
    "reflect": Strategy(reflect, samples=3, attempts=3),
    "judge": Strategy(judge, samples=1, attempts=11, ends_early=False, asks_judge=True, profiles_fast=True),
    "staged": Strategy(staged, samples=1, attempts=(1 + STAGES) * TRIES, staged=True, profiles_fast=True),
}

__all__ = ["STRATEGIES", "Strategy", "judge", "reflect", "staged"]
