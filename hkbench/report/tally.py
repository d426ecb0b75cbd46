"""Counting over samples: failures, tokens, calls, times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from hkbench.records import (
    AdviceFailed,
    Backend,
    EvaluationFailed,
    Failure,
    FailureKind,
    GenerationFailed,
    MachineFailed,
    Outcome,
    Ownership,
    Price,
    Role,
    RunFacts,
    Stage,
    Status,
    Usage,
    outcome_of,
    problem_outcome,
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
from hkbench.store.costs import DIGITS, cost_of
from hkbench.store.plain import one_line
from hkbench.store.reader import AdviceView, CallView, ProblemView, SampleView

_STAGES = tuple(Stage)
_KINDS = tuple(FailureKind)
_MESSAGE = 300  # characters of a message in the report; result.json has the whole of it


def is_judged(sample: SampleView) -> bool:
    """Whether there is a verdict on the sample's correctness."""
    return sample.verdict is not None and sample.verdict.status is not Status.COMPILED


def is_compiled(sample: SampleView) -> bool:
    """Whether it was built only."""
    return sample.verdict is not None and sample.verdict.status is Status.COMPILED


def is_correct(sample: SampleView) -> bool:
    return sample.verdict is not None and sample.verdict.status in (Status.FAST, Status.SLOW)


def is_refused(sample: SampleView) -> bool:
    """Whether the answers were right, and the verdict does not count."""
    return sample.verdict is not None and sample.verdict.status is Status.REFUSED


def is_fast(sample: SampleView) -> bool:
    return sample.verdict is not None and sample.verdict.status is Status.FAST


def speedup_of(sample: SampleView) -> float:
    """The speed-up of a correct sample."""
    if sample.verdict is None or sample.verdict.speedup is None:
        raise ValueError(f"{sample.key} has no speed-up")
    return sample.verdict.speedup.value


def best_of(samples: Iterable[SampleView]) -> SampleView | None:
    """The correct sample with the highest speed-up, the earliest of equals; `None` when none is correct."""
    return max(filter(is_correct, samples), key=speedup_of, default=None)


def outcome(sample: SampleView) -> Outcome:
    """The class of a sample by the interval of its speed-up."""
    verdict = sample.verdict
    if verdict is None or verdict.speedup is None:
        return outcome_of(verdict.status if verdict is not None else None)
    return outcome_of(verdict.status, verdict.speedup.value, verdict.speedup.low, verdict.speedup.high)


def outcome_of_all(samples: Iterable[SampleView]) -> Outcome:
    """The class of a problem by its samples."""
    return problem_outcome((outcome(s), speedup_of(s) if is_correct(s) else None) for s in samples)


def furthest_failure(samples: Iterable[SampleView]) -> Failure | None:
    """The failure of the sample that reached the latest stage, the last one of equals."""
    failures = [s.verdict.failure for s in samples if s.verdict is not None and s.verdict.failure is not None]
    return max(reversed(failures), key=lambda failure: _STAGES.index(failure.stage), default=None)


def ownership_of(sample: SampleView) -> Ownership | None:
    """Returns whose work the sample is; an older record says it by its share of the work, or not at all (`None`)."""
    recorded = sample.verdict.ownership if sample.verdict is not None else None
    return Ownership.known(recorded, own_of(sample))


def own_of(sample: SampleView) -> float | None:
    """The share of the work that the sample's own kernels did; `None`: not traced."""
    return sample.verdict.own if sample.verdict is not None else None


def message_of(text: str) -> str:
    return one_line(text, _MESSAGE)


def model_failures(samples: Iterable[SampleView]) -> tuple[FailureCount, ...]:
    """Incorrect verdicts by stage and kind, in the order of the stages."""
    return failure_counts(
        (sample.verdict.failure.stage, sample.verdict.failure.kind, 1)
        for sample in samples
        if sample.verdict is not None and sample.verdict.failure is not None
    )


def failure_counts(found: Iterable[tuple[Stage, FailureKind, int]]) -> tuple[FailureCount, ...]:
    """Their sums by stage and kind, in the order of the stages."""
    sums: Counter[tuple[Stage, FailureKind]] = Counter()
    for stage, kind, count in found:
        sums[stage, kind] += count
    order = sorted(sums, key=lambda pair: (_STAGES.index(pair[0]), _KINDS.index(pair[1])))
    return tuple(FailureCount(stage=stage, kind=kind, count=sums[stage, kind]) for stage, kind in order)


def language_of(sample: SampleView) -> Backend | None:
    """What the sample's kernels are written in, where its verdict says."""
    return sample.verdict.language if sample.verdict is not None else None


def languages(samples: Iterable[SampleView]) -> tuple[LanguageCount, ...]:
    """Samples with a verdict by the language of their kernels, most frequent first, what is not known last."""
    found = Counter(language_of(sample) for sample in samples if sample.verdict is not None)
    order = sorted(found, key=lambda language: (language is None, -found[language], str(language)))
    return tuple(LanguageCount(language=language, count=found[language]) for language in order)


def machine_failures(events: Sequence[MachineFailed], problems: Iterable[ProblemView]) -> tuple[MachineFailure, ...]:
    """Failures of service and machine by step and error, most frequent first."""
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
    """Tokens of the calls that were answered."""
    usages = [call.usage or Usage() for call in calls if call.answered]
    return Tokens(
        input=_tokens(usages, lambda usage: usage.input),
        output=_tokens(usages, lambda usage: usage.output),
        reasoning=_tokens(usages, lambda usage: usage.reasoning),
        cached_input=_tokens(usages, lambda usage: usage.cached_input),
    )


def _tokens(usages: list[Usage], figure: Callable[[Usage], int | None]) -> TokenCount:
    known = [value for value in map(figure, usages) if value is not None]
    return TokenCount(total=sum(known) if known else None, unreported_replies=len(usages) - len(known))


def role_of(call: CallView) -> Role:
    return Role.JUDGE if isinstance(call, AdviceView) else Role.CODER


def price_of(role: Role, facts: RunFacts) -> Price | None:
    return facts.judge_price if role is Role.JUDGE else facts.price


def cost_of_call(call: CallView, facts: RunFacts) -> float | None:
    if not call.answered:
        return None
    return 0.0 if call.replayed else _rounded(cost_of(call.usage or Usage(), price_of(role_of(call), facts)))


def cost(calls: Iterable[CallView], facts: RunFacts) -> Cost:
    """Money for the calls that were answered, each by the price of its model; see the definition in the report."""
    made = [call for call in calls if call.replayed is False]
    costs = [cost_of(call.usage or Usage(), price_of(role_of(call), facts)) for call in made]
    price = facts.price or facts.judge_price
    known = [value for value in costs if value is not None]
    return Cost(
        total=_rounded(math.fsum(known)) if known or not costs else None,
        currency=price.currency if price is not None else None,
        unpriced_replies=len(costs) - len(known),
    )


def sum_of_costs(found: Iterable[Cost]) -> Cost:
    """Of several problems of one run."""
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
    """The calls of each role; the judge's where one was asked."""
    kinds: dict[Role, type[MachineFailed]] = {Role.CODER: GenerationFailed, Role.JUDGE: AdviceFailed}
    rows = []
    for role, kind in kinds.items():
        its = [call for call in found if role_of(call) is role]
        failed = [event for event in failures if isinstance(event, kind)]
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


def seconds(values: Iterable[float | None]) -> float | None:
    """Sum of the known values to the microsecond; `None` when none is known."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return round(sum(known), 6) if known else None
