"""The last lines of a batch: what the run has come to, what it cost, and where the report lies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hkbench.headline import SEPARATOR, classes_of, plural, sentence
from hkbench.records import Outcome
from hkbench.report import format as fmt
from hkbench.report.disagreements import warnings_of
from hkbench.report.model import Report
from hkbench.store.figures import speedup_interval
from hkbench.store.sanitize import one_line

_BEST = 5  # problems with the highest speed-ups


def last_lines(report: Report, folder: Path) -> tuple[str, ...]:
    """Return the lines as (name, text): result, solved, best, by category, warning, spent, time, report."""
    return tuple(f"{name}: {text}" for name, text in _lines(report, folder))


def _lines(report: Report, folder: Path) -> Iterator[tuple[str, str]]:
    counts = Counter(problem.outcome for problem in report.problems)
    yield "result", sentence(counts)
    if report.config.compiled_for is None:
        expected = classes_of(report.config)
        shown = [outcome for outcome in Outcome if counts[outcome] or outcome in expected]
        solved = f"{report.overall.solved} of {plural(len(report.problems), 'problem')}"
        yield "solved", SEPARATOR.join([solved, *(f"{outcome.label} {counts[outcome]}" for outcome in shown)])
    if best := _best(report):
        yield "best", ", ".join(best)
    yield from (("category", text) for text in _categories(report))
    yield from (("warning", text) for text in warnings_of(report.disagreements))
    yield "spent", fmt.spent(report)
    yield "time", fmt.duration(report.overall.wall_seconds)
    yield "report", f"{folder / 'detailed_report.txt'}, {folder / 'report.html'}"


def _best(report: Report) -> list[str]:
    found = [(one.problem, one.best_speedup) for one in report.problems if one.best_speedup is not None]
    found.sort(key=lambda pair: -pair[1].value)
    return [
        f"{one_line(name, 60)} {speedup_interval(found.value, found.low, found.high)}" for name, found in found[:_BEST]
    ]


def _categories(report: Report) -> Iterator[str]:
    """Yield what each category of a staged run came to."""
    of_problem = {
        problem.problem: choice.choice
        for problem in report.problems
        for choice in problem.decisions
        if choice.what == "category"
    }
    for name, count in Counter(of_problem.values()).most_common():
        solved = sum(problem.solved for problem in report.problems if of_problem.get(problem.problem) == name)
        yield f"{one_line(name, 60)}: {plural(count, 'problem')}, {solved} solved"
