"""usage.csv: a row a call of a model, for whoever adds up otherwise."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from hkbench.records import Role, Usage
from hkbench.report import tally
from hkbench.store.plain import one_line
from hkbench.store.reader import AdviceView, CallView, ProblemView, RunView

COLUMNS = (
    "problem", "attempt", "role", "call", "model", "input", "output", "reasoning", "cached_input", "cost", "currency",
    "seconds", "tries", "replayed", "finish_reason",
)  # fmt: skip


def usage_text(run: RunView) -> str:
    """A header, then the answered calls in the order of plan and attempts; what is not known is an empty cell.

    `call`: the sample of a coder, the number of a judge's call. `seconds`: of the call that was answered.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for problem in run.problems:
        writer.writerows(_row(run, call) for call in _in_order(problem) if call.answered)
    return out.getvalue()


def _in_order(problem: ProblemView) -> Iterator[CallView]:
    """By attempt; the judge's calls come before the prompt is made."""
    calls = sorted(problem.calls, key=lambda call: (call.key.attempt, tally.role_of(call) is Role.CODER))
    return iter(calls)


def _row(run: RunView, call: CallView) -> tuple[object, ...]:
    usage = call.usage or Usage()
    price = tally.price_of(tally.role_of(call), run.facts)
    return (
        call.key.problem,
        call.key.attempt,
        tally.role_of(call).value,
        call.key.call if isinstance(call, AdviceView) else call.key.sample,
        _text(call.model),
        usage.input,
        usage.output,
        usage.reasoning,
        usage.cached_input,
        tally.cost_of_call(call, run.facts),
        price.currency if price is not None else None,
        tally.seconds([call.generation_seconds]),
        call.tries,
        str(bool(call.replayed)).lower(),
        _text(call.finish_reason),
    )


def _text(value: str | None) -> str | None:
    return one_line(value, 1000) if value is not None else None
