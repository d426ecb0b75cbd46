"""Counting over samples: failures, tokens, calls, times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from hkbench.records import (
    AdviceFailed,
    EvaluationFailed,
    Failure,
    FailureKind,
    GenerationFailed,
    MachineFailed,
    Price,
    Role,
    RunFacts,
    Stage,
    Usage,
)
from hkbench.report.model import (
    Calls,
    Cost,
    FailureCount,
    LanguageCount,
    MachineFailure,
    RoleReport,
    TokenCount,
    Tokens,
)
from hkbench.store.costs import DIGITS, Spending, cost_of
from hkbench.store.reader import AdviceView, CallView, ProblemView, SampleView
from hkbench.store.sanitize import one_line

_KINDS = tuple(FailureKind)
_MESSAGE = 300  # characters of a message in the report; result.json has the whole of it


def furthest_failure(samples: Iterable[SampleView]) -> Failure | None:
    """Return the failure of the sample that reached the latest stage, the last one of equals."""
    failures = [sample.failure for sample in samples if sample.failure is not None]
    return max(reversed(failures), key=lambda failure: failure.stage.place, default=None)


def message_of(text: str) -> str:
    return one_line(text, _MESSAGE)


def step_of(problem: ProblemView, attempt: int) -> str | None:
    """Return what an attempt of a stepwise strategy is: seed, repair, optimise, the name of a stage; `None`: not known.

    An older run does not record it: there the stages that were begun, or the judge's question, tell.
    """
    if (step := problem.steps.get(attempt)) is not None:
        return message_of(step)
    begun = [one.choice for one in problem.decisions if one.what == "stage" and one.attempt <= attempt]
    if begun:
        return message_of(begun[-1])
    if attempt == 1 or any(one.what == "category" for one in problem.decisions):
        return "seed"
    asked = [one.kind for one in problem.advice if one.key.attempt == attempt]
    return asked[-1].value if asked and asked[-1] is not None else None


def model_failures(samples: Iterable[SampleView]) -> tuple[FailureCount, ...]:
    """Count incorrect verdicts by stage and kind, in the order of the stages."""
    return failure_counts(
        (sample.failure.stage, sample.failure.kind, 1) for sample in samples if sample.failure is not None
    )


def failure_counts(found: Iterable[tuple[Stage, FailureKind, int]]) -> tuple[FailureCount, ...]:
    """Return the verdicts' sums by stage and kind, in the order of the stages."""
    sums: Counter[tuple[Stage, FailureKind]] = Counter()
    for stage, kind, count in found:
        sums[stage, kind] += count
    order = sorted(sums, key=lambda pair: (pair[0].place, _KINDS.index(pair[1])))
    return tuple(FailureCount(stage=stage, kind=kind, count=sums[stage, kind]) for stage, kind in order)


def languages(samples: Iterable[SampleView]) -> tuple[LanguageCount, ...]:
    """Count samples with a verdict by the language of their kernels, most frequent first, unknown last."""
    found = Counter(sample.language for sample in samples if sample.status is not None)
    order = sorted(found, key=lambda language: (language is None, -found[language], str(language)))
    return tuple(LanguageCount(language=language, count=found[language]) for language in order)


def machine_failures(events: Sequence[MachineFailed], problems: Iterable[ProblemView]) -> tuple[MachineFailure, ...]:
    """Count failures of service and machine by step and error, most frequent first."""
    generation = [(e.error, e.message) for e in events if not isinstance(e, EvaluationFailed)]
    evaluation = [(e.error, e.message) for e in events if isinstance(e, EvaluationFailed)]
    ended = [("ended early", f"{p.name}: {p.error}") for p in problems if p.error is not None]
    return (
        *_by_error("generation", generation),
        *_by_error("evaluation", evaluation),
        *_by_error("problem", ended),
    )


def _by_error(
    step: Literal["generation", "evaluation", "problem"], found: Sequence[tuple[str, str]]
) -> list[MachineFailure]:
    counts = Counter(error for error, _ in found)
    last = dict(found)
    return [
        MachineFailure(step=step, error=message_of(error), count=count, last_message=message_of(last[error]))
        for error, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def tokens(calls: Iterable[CallView]) -> Tokens:
    """Sum the tokens of the calls that were answered."""
    usages = [call.usage for call in calls if call.answered]
    return Tokens(
        input=_tokens(usages, lambda usage: usage.input),
        output=_tokens(usages, lambda usage: usage.output),
        reasoning=_tokens(usages, lambda usage: usage.reasoning),
        cached_input=_tokens(usages, lambda usage: usage.cached_input),
    )


def _tokens(usages: list[Usage], figure: Callable[[Usage], int | None]) -> TokenCount:
    known = [value for value in map(figure, usages) if value is not None]
    return TokenCount(total=sum(known) if known else None, unreported_replies=len(usages) - len(known))


def sum_of_tokens(found: Iterable[TokenCount]) -> TokenCount:
    """Return the summed tokens of several problems."""
    counts = list(found)
    known = [one.total for one in counts if one.total is not None]
    return TokenCount(
        total=sum(known) if known else None, unreported_replies=sum(one.unreported_replies for one in counts)
    )


def role_of(call: CallView) -> Role:
    return call.key.role if isinstance(call, AdviceView) else Role.CODER


def price_of(role: Role, facts: RunFacts) -> Price | None:
    return facts.price if role is Role.CODER else facts.judge_price


def cost_of_call(call: CallView, facts: RunFacts) -> float | None:
    if not call.answered:
        return None
    return 0.0 if call.replayed else _rounded(cost_of(call.usage, price_of(role_of(call), facts)))


def cost(calls: Iterable[CallView], facts: RunFacts) -> Cost:
    """Sum the money for answered calls, each by the price of its model; see the definition in the report."""
    spending = Spending(facts.price, facts.judge_price)
    for call in calls:
        if call.replayed is not None:
            spending.take(call.key, call.usage, call.replayed)
    return Cost(total=spending.cost, currency=spending.currency, unpriced_replies=spending.unpriced)


def sum_of_costs(found: Iterable[Cost]) -> Cost:
    """Return the summed cost of several problems of one run."""
    costs = list(found)
    known = [one.total for one in costs if one.total is not None]
    unpriced = sum(one.unpriced_replies for one in costs)
    return Cost(
        total=_rounded(math.fsum(known)) if any(known) or not unpriced else None,
        currency=next((one.currency for one in costs), None),
        unpriced_replies=unpriced,
    )


def cost_per_solved(whole: Cost, solved: int) -> float | None:
    if whole.total is None or whole.unpriced_replies or not solved:
        return None
    return _rounded(whole.total / solved)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def calls(found: Sequence[CallView], failures: Iterable[MachineFailed]) -> Calls:
    made = [call for call in found if call.replayed is False]
    return Calls(
        made=len(made),
        replayed=sum(call.replayed is True for call in found),
        retries=sum((call.tries or 1) - 1 for call in made),
        failed=sum(not isinstance(event, EvaluationFailed) for event in failures),
    )


def roles(found: Sequence[CallView], failures: Sequence[MachineFailed], facts: RunFacts) -> tuple[RoleReport, ...]:
    """Return the calls of each role that was asked."""
    rows = []
    for role in Role:
        its = [call for call in found if role_of(call) is role]
        failed = [event for event in failures if _asked_as(event) is role]
        if its or failed or role is Role.CODER:
            rows.append(
                RoleReport(
                    role=role,
                    models=tuple(sorted({call.model for call in its if call.model is not None})),
                    calls=calls(its, failed),
                    tokens=tokens(its),
                    cost=cost(its, facts),
                    seconds=seconds(call.generation_seconds for call in its),
                )
            )
    return tuple(rows)


def _asked_as(event: MachineFailed) -> Role | None:
    """Return the role of the call that failed; `None` where none did."""
    if isinstance(event, AdviceFailed):
        return event.key.role
    return Role.CODER if isinstance(event, GenerationFailed) else None


def seconds(values: Iterable[float | None]) -> float | None:
    """Sum of the known values to the microsecond; `None` when none is known."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return round(sum(known), 6) if known else None
