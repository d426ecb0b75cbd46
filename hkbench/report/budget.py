"""What the rules of strategy staged saved, and might have cost: estimates from the stages that were worked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from hkbench.records import Decided, RunFacts, best_of, speedup_of
from hkbench.report import aggregate
from hkbench.report.model import CategoryBudget, Saved, StageBudget
from hkbench.stats import geometric_mean
from hkbench.store.costs import DIGITS
from hkbench.store.reader import CallView, ProblemView, RunView, SampleView


@dataclass(frozen=True)
class _Worked:
    """A stage that was worked to its end."""

    stage: str
    before: float | None  #: the best speed-up so far; `None`: nothing is correct
    after: float | None
    attempts: int
    tokens: int | None  #: `None`: a call did not say
    cost: float | None
    seconds: float

    @property
    def gained(self) -> bool:
        return self.after is not None and (self.before is None or self.after > self.before)

    @property
    def gain(self) -> float | None:
        return self.after / self.before if self.after is not None and self.before is not None else None


def budget_of(run: RunView) -> tuple[CategoryBudget, ...]:
    """Return the budgets by category, in the order of the plan; unclassified problems are in none."""
    by_category: dict[str, list[ProblemView]] = {}
    for problem in run.problems:
        category = next((one.choice for one in problem.decisions if one.what == "category"), None)
        if category is not None:
            by_category.setdefault(aggregate.message_of(category), []).append(problem)
    return tuple(_category(name, problems, run.facts) for name, problems in by_category.items())


def _category(name: str, problems: Sequence[ProblemView], facts: RunFacts) -> CategoryBudget:
    decisions = [one for problem in problems for one in problem.decisions]
    worked = [one for problem in problems for one in _worked(problem, facts)]
    skipped, left = _chosen(decisions, "skip"), _chosen(decisions, "left")
    stages = dict.fromkeys(one.choice for one in decisions if one.what in ("stage", "skip", "left"))
    return CategoryBudget(
        category=name,
        problems=len(problems),
        worked=len(worked),
        skipped=len(skipped),
        left_out=len(left),
        saved=_saved(worked, len(skipped) + len(left)),
        stages=tuple(
            _stage(stage, [one for one in worked if one.stage == stage], skipped.count(stage), left.count(stage))
            for stage in stages
        ),
    )


def _chosen(decisions: Iterable[Decided], what: str) -> list[str]:
    return [one.choice for one in decisions if one.what == what]


def _stage(name: str, worked: Sequence[_Worked], skipped: int, left_out: int) -> StageBudget:
    gains = [one.gain for one in worked if one.gain is not None]
    return StageBudget(
        stage=aggregate.message_of(name),
        worked=len(worked),
        skipped=skipped,
        left_out=left_out,
        gained=sum(one.gained for one in worked),
        geometric_mean_gain=geometric_mean(gains) if gains else None,
    )


def _saved(worked: Sequence[_Worked], stages: int) -> Saved:
    """Estimate what so many stages cost, at the mean of those that were worked."""

    def estimate(figure: Callable[[_Worked], float | None]) -> float | None:
        values = [figure(one) for one in worked]
        known = [value for value in values if value is not None]
        if not known or len(known) < len(values):
            return None
        return round(stages * math.fsum(known) / len(known), DIGITS)

    return Saved(
        attempts=estimate(lambda one: one.attempts),
        tokens=estimate(lambda one: one.tokens),
        cost=estimate(lambda one: one.cost),
        seconds=estimate(lambda one: one.seconds),
    )


def _worked(problem: ProblemView, facts: RunFacts) -> Iterator[_Worked]:
    """Yield the stages of a problem; not the one that a run ended in."""
    begun = sorted((one.attempt, one.choice) for one in problem.decisions if one.what == "stage")
    ends = [attempt for attempt, _ in begun[1:]]
    if problem.closed and problem.error is None:
        ends.append(len(problem.attempts) + 1)
    for (start, stage), end in zip(begun, ends, strict=False):
        attempts = problem.attempts[start - 1 : end - 1]
        samples = [sample for attempt in attempts for sample in attempt]
        if any(one.judged for one in samples):
            calls = [call for call in problem.calls if start <= call.key.attempt < end]
            seconds = [*(call.generation_seconds for call in calls), *(one.evaluation_seconds for one in samples)]
            yield _Worked(
                stage=stage,
                before=_best(problem.attempts[: start - 1]),
                after=_best(problem.attempts[: end - 1]),
                attempts=len(attempts),
                tokens=_tokens(calls),
                cost=_cost(calls, facts),
                seconds=math.fsum(one for one in seconds if one is not None and math.isfinite(one)),
            )


def _best(attempts: Iterable[Iterable[SampleView]]) -> float | None:
    best = best_of(sample for attempt in attempts for sample in attempt)
    return speedup_of(best)


def _tokens(calls: Sequence[CallView]) -> int | None:
    total = 0
    for call in calls:
        if call.usage.input is None or call.usage.output is None:
            return None
        total += call.usage.input + call.usage.output
    return total


def _cost(calls: Sequence[CallView], facts: RunFacts) -> float | None:
    total = 0.0
    for call in calls:
        cost = aggregate.cost_of_call(call, facts)
        if cost is None:
            return None
        total += cost
    return total
