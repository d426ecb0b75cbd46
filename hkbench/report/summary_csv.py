"""summary.csv: a row a problem, and a last one for all of them."""

from __future__ import annotations

from hkbench.report.model import Summary, SummaryRow
from hkbench.report.table import csv_text

ALL = "all"  #: `problem` and `state` of the last row; no problem is in that state
COLUMNS = (*SummaryRow.model_fields, "solved_share", "correct_share")


def summary_text(summary: Summary) -> str:
    """Return the table; the last row has shares of the judged problems, the geometric mean speed-up, and sums."""
    return csv_text(COLUMNS, [*summary.problems, _all(summary)])


def _all(summary: Summary) -> dict[str, object]:
    overall, rows = summary.overall, summary.problems
    mean = overall.geometric_mean_speedup
    return {
        "problem": ALL,
        "state": ALL,
        "best_speedup": mean.value if mean is not None else None,
        "best_speedup_low": mean.low if mean is not None else None,
        "best_speedup_high": mean.high if mean is not None else None,
        "attempts": sum(row.attempts for row in rows),
        "samples_judged": overall.samples_judged,
        "samples_correct": overall.samples_correct,
        "samples_refused": overall.samples_refused,
        "samples_compiled": overall.samples_compiled,
        "calls_made": overall.calls.made,
        "calls_replayed": overall.calls.replayed,
        "tokens_input": overall.tokens.input.total,
        "tokens_output": overall.tokens.output.total,
        "tokens_reasoning": overall.tokens.reasoning.total,
        "tokens_cached_input": overall.tokens.cached_input.total,
        "cost": overall.cost.total,
        "unpriced_replies": overall.cost.unpriced_replies,
        "currency": overall.cost.currency,
        "wall_seconds": overall.wall_seconds,
        "solved_share": overall.solved / overall.judged if overall.judged else None,
        "correct_share": overall.correct_share,
    }
