"""The columns of usage.csv and of `hkbench.load_run(...).calls`: a row an answered call of a model."""

from __future__ import annotations

from collections.abc import Iterator

from hkbench.records import Role
from hkbench.report import aggregate
from hkbench.report.model import ReportRecord
from hkbench.store.reader import AdviceView, CallView, RunView


class CallRow(ReportRecord):
    """One answered call. `None`, an empty cell: not known."""

    problem: str
    attempt: int
    role: Role
    call: int  #: the sample of a coder, the number of a judge's call
    model: str | None
    input: int | None  #: tokens, as the three that follow
    output: int | None
    reasoning: int | None
    cached_input: int | None
    cost: float | None
    currency: str | None
    seconds: float | None  #: of the call that was answered
    tries: int | None
    replayed: bool
    finish_reason: str | None


def call_rows(run: RunView) -> Iterator[CallRow]:
    """Yield the answered calls in the order of plan and attempts; a judge's come before the prompt that follows."""
    for problem in run.problems:
        for call in sorted(problem.calls, key=lambda call: (call.key.attempt, aggregate.role_of(call) is Role.CODER)):
            if call.answered:
                yield _row(run, call)


def _row(run: RunView, call: CallView) -> CallRow:
    usage, role = call.usage, aggregate.role_of(call)
    price = aggregate.price_of(role, run.facts)
    return CallRow(
        problem=call.key.problem,
        attempt=call.key.attempt,
        role=role,
        call=call.key.call if isinstance(call, AdviceView) else call.key.sample,
        model=call.model,
        input=usage.input,
        output=usage.output,
        reasoning=usage.reasoning,
        cached_input=usage.cached_input,
        cost=aggregate.cost_of_call(call, run.facts),
        currency=price.currency if price is not None else None,
        seconds=aggregate.seconds([call.generation_seconds]),
        tries=call.tries,
        replayed=bool(call.replayed),
        finish_reason=call.finish_reason,
    )
