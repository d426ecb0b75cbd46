"""Several runs side by side as data: comparison.json. `comparison.schema.json` is generated from `SideBySide`.

Each run is compared with the first. As in the report: seconds everywhere, `null` where a figure is not known, and
fields are only ever added within one `schema_version`. Nothing depends on when it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from hkbench.errors import UsageError
from hkbench.headline import model_name
from hkbench.records import Interval, Outcome, RunConfig, RunFacts
from hkbench.report.compare import KS, Comparison, compare, left_out_of, mean, obstacles, settings_of, total
from hkbench.report.compare_words import conclusion, unlike
from hkbench.report.model import (
    DEFINITIONS,
    FAST_P,
    Cost,
    Estimate,
    FailureCount,
    Headline,
    ProblemReport,
    ProblemState,
    Report,
    ReportRecord,
    TokenCount,
)
from hkbench.report.tally import cost_per_solved, failure_counts, sum_of_costs
from hkbench.stats import Floats, bootstrap_interval, geometric_mean, share_interval
from hkbench.store.plain import one_line

_LABEL = 40  #: characters of a model and of a folder
NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

SIDE_BY_SIDE_DEFINITIONS = {
    **{
        word: DEFINITIONS[word]
        for word in (
            "outcome",
            "geometric_mean_speedup_all",
            "solved",
            "correct",
            "judged",
            "speedup",
            "fast_p",
            "pass_at_k",
            "weak",
            "cost",
            "cost_per_solved",
        )
    },
    "common": "problems that every run finished and judged, with the same file: runs[].figures and the figures drawn "
    "are over these",
    "compared": "of two runs: the problems that both finished and judged, with the same file, each by its best correct "
    "sample; against[] is over these",
    "own": "the headlines of a run over all of its own judged problems, as in its own report",
    "difference": "mean over the compared problems of B - A (of shares: 0.1 is ten points), for speed-ups the "
    "geometric mean of B / A over the problems correct in both; the interval is a 95 % percentile bootstrap over "
    "problems, expanded for few of them (Hesterberg 2015, section 4.3), absent for fewer than three or where none "
    "differs",
    "against[].outcome": "better or worse: at least six problems differ and the interval leaves out no difference; "
    "else open",
    "worse": "B solves fewer problems or has slower kernels than A, by the outcomes of solved and speedup over all "
    "compared problems",
    "share intervals": "of solved, correct and fast_p of a run: Wilson's 95 % score interval over problems; of pass@k "
    "and the mean speed-up: a 95 % percentile bootstrap over problems",
}


class Chance(ReportRecord):
    """pass@k over the problems that have k judged samples in attempt 1."""

    k: int
    problems: int
    value: Estimate


class RunFigures(ReportRecord):
    """One run over the common problems."""

    problems: int
    outcomes: dict[Outcome, int]
    solved: int
    correct: int
    faster_share: Estimate
    solved_share: Estimate
    correct_share: Estimate
    fast_p: dict[str, Estimate]
    pass_at_k: tuple[Chance, ...]  #: for the `KS`, and for all samples of an attempt
    geometric_mean_speedup: Estimate | None  #: of the best samples of the problems that this run has correct
    geometric_mean_speedup_all: Estimate  #: over all of them, with 1 where no kernel is correct and faster
    samples_judged: int
    samples_correct: int
    model_failures: tuple[FailureCount, ...]
    calls_made: int
    calls_replayed: int
    tokens_input: TokenCount
    tokens_output: TokenCount
    cost: Cost
    cost_per_solved: float | None
    generation_seconds: float | None
    evaluation_seconds: float | None
    wall_seconds: float | None  #: summed over problems, which overlap


class RunColumn(ReportRecord):
    """One run. `folder`: as it was named."""

    name: str  #: A, B, ... as on the terminal
    label: str  #: its model, told apart from the others
    folder: str
    complete: bool
    incomplete_because: str | None
    config: RunConfig
    facts: RunFacts
    own: Headline
    own_without_weak: Headline | None
    figures: RunFigures | None  #: `None` where no problem is common to all runs
    figures_without_weak: RunFigures | None  #: `None` where no common problem is weak, or every one is


class SettingRow(ReportRecord):
    """A setting, or a fact of the machine, in each run."""

    setting: str
    values: tuple[str | None, ...]
    differs: bool


class ProblemCell(ReportRecord):
    """What became of a problem in one run."""

    number: int  #: its place in the run's plan, from 1: the anchor p1 of the run's report.html
    state: ProblemState
    judged: bool
    outcome: Outcome
    solved: bool
    correct: bool
    best_speedup: Estimate | None
    best_attempt: int | None
    best_sample: int | None


class ProblemRow(ReportRecord):
    """A problem in each run; `None` where a run has it not in its plan."""

    problem: str
    weak: bool
    common: bool
    cells: tuple[ProblemCell | None, ...]


class Against(ReportRecord):
    """A run against the first one."""

    run: str
    comparison: Comparison
    worse: bool
    conclusion: str
    conclusion_without_weak: str | None


class SideBySide(ReportRecord):
    """comparison.json. Runs in the order in which they were named, problems in that of the first plan."""

    schema_version: Literal[1] = 1
    runs: tuple[RunColumn, ...]
    settings: tuple[SettingRow, ...]
    common: tuple[str, ...]
    common_weak: tuple[str, ...]  #: those of them that are weak in what some run recorded
    against: tuple[Against, ...]
    problems: tuple[ProblemRow, ...]
    worse: bool  #: some run is worse than the first, by more than the interval
    definitions: dict[str, str]


def side_by_side(runs: Sequence[tuple[str, Report]], *, force: bool = False) -> SideBySide:
    """Compares each run with the first; each comes with the name of its folder.

    Raises:
        UsageError: fewer than two runs, or more than there are letters; a run measured nothing; a run was measured on
            another device or at other sizes (unless `force`); a run has no judged problem in common with the first.
    """
    if not 2 <= len(runs) <= len(NAMES):
        raise UsageError(f"{len(runs)} runs cannot be compared: name two, or up to {len(NAMES)}")
    reports = [report for _, report in runs]
    unmeasured = [NAMES[i] for i, report in enumerate(reports) if report.config.compiled_for is not None]
    if unmeasured:
        raise UsageError(
            f"{' and '.join(unmeasured)} measured nothing (--build-only): what was only compiled is neither solved nor "
            "failed; name runs that measured"
        )
    labels = labels_of([(folder, report.config) for folder, report in runs])
    against = tuple(
        _against(reports[0], other, NAMES[i], (labels[0], labels[i]), force) for i, other in enumerate(reports[1:], 1)
    )
    excluded = {name for other in reports[1:] for name in left_out_of(reports[0], other)}
    common = tuple(one.problem for one in reports[0].problems if one.problem not in excluded)
    weak = {one.problem for report in reports for one in report.problems if one.weak}
    strong = tuple(name for name in common if name not in weak)
    return SideBySide(
        runs=tuple(
            _column(NAMES[i], labels[i], folder, report, common, strong) for i, (folder, report) in enumerate(runs)
        ),
        settings=_settings(reports),
        common=common,
        common_weak=tuple(name for name in common if name in weak),
        against=against,
        problems=_problems(reports, set(common), weak),
        worse=any(one.worse for one in against),
        definitions=SIDE_BY_SIDE_DEFINITIONS,
    )


def labels_of(runs: Sequence[tuple[str, RunConfig]]) -> list[str]:
    """The model of each run; with the folder's name where two have the same, and with a letter where that is so too."""
    models = [one_line(model_name(config), _LABEL) for _, config in runs]
    longer = [
        f"{model} ({one_line(Path(folder).name, _LABEL)})" if models.count(model) > 1 else model
        for model, (folder, _) in zip(models, runs, strict=True)
    ]
    return [f"{label} {NAMES[i]}" if longer.count(label) > 1 else label for i, label in enumerate(longer)]


def _against(first: Report, other: Report, run: str, labels: tuple[str, str], force: bool) -> Against:
    found = obstacles(first, other)
    if found and not force:
        raise UsageError(f"{unlike(found, run)} --force compares them all the same")
    comparison = compare(first, other, run)
    if comparison is None:
        reasons = "\n".join(f"  {name}: {reason}" for name, reason in left_out_of(first, other, run).items())
        raise UsageError(f"no problem was finished in both A and {run}:\n{reasons}")
    without = comparison.without_weak
    return Against(
        run=run,
        comparison=comparison,
        worse=comparison.worse,
        conclusion=conclusion(comparison.whole, labels[1], labels[0]),
        conclusion_without_weak=conclusion(without, labels[1], labels[0]) if without is not None else None,
    )


def _column(
    name: str, label: str, folder: str, report: Report, common: Sequence[str], strong: Sequence[str]
) -> RunColumn:
    overall = report.overall
    return RunColumn(
        name=name,
        label=label,
        folder=folder,
        complete=report.complete,
        incomplete_because=report.incomplete_because,
        config=report.config,
        facts=report.facts,
        own=Headline(**{field: getattr(overall, field) for field in Headline.model_fields}),
        own_without_weak=overall.without_weak,
        figures=_figures(report, common) if common else None,
        figures_without_weak=_figures(report, strong) if strong and len(strong) < len(common) else None,
    )


def _figures(report: Report, names: Sequence[str]) -> RunFigures:
    chosen = set(names)
    problems = [one for one in report.problems if one.problem in chosen]
    count = len(problems)
    cost = sum_of_costs(one.cost for one in problems)
    speedups = [one.best_speedup.value for one in problems if one.best_speedup is not None]
    found = [one.outcome for one in problems]
    kept = [max(1.0, one.best_speedup.value) if one.best_speedup is not None else 1.0 for one in problems]
    solved, correct = sum(one.solved for one in problems), sum(one.correct for one in problems)
    return RunFigures(
        problems=count,
        outcomes={outcome: found.count(outcome) for outcome in Outcome},
        faster_share=_estimate(share_interval(found.count(Outcome.FASTER), count)),
        solved=solved,
        correct=correct,
        solved_share=_estimate(share_interval(solved, count)),
        correct_share=_estimate(share_interval(correct, count)),
        fast_p={f"{p:g}": _estimate(share_interval(_above(problems, f"{p:g}"), count)) for p in FAST_P},
        pass_at_k=tuple(_chances(problems, report.config.samples)),
        geometric_mean_speedup=_mean(speedups, geometric_mean) if speedups else None,
        geometric_mean_speedup_all=_mean(kept, geometric_mean),
        samples_judged=sum(one.judged for one in problems),
        samples_correct=sum(one.correct_samples for one in problems),
        model_failures=failure_counts((f.stage, f.kind, f.count) for one in problems for f in one.model_failures),
        calls_made=sum(one.calls.made for one in problems),
        calls_replayed=sum(one.calls.replayed for one in problems),
        tokens_input=_tokens(one.tokens.input for one in problems),
        tokens_output=_tokens(one.tokens.output for one in problems),
        cost=cost,
        cost_per_solved=cost_per_solved(cost, solved),
        generation_seconds=total(one.generation_seconds for one in problems),
        evaluation_seconds=total(one.evaluation_seconds for one in problems),
        wall_seconds=total(one.wall_seconds for one in problems),
    )


def _tokens(counts: Iterable[TokenCount]) -> TokenCount:
    found = list(counts)
    return TokenCount(
        total=total(one.total for one in found), unreported_replies=sum(one.unreported_replies for one in found)
    )


def _above(problems: Sequence[ProblemReport], p: str) -> int:
    return sum(one.fast_p is not None and one.fast_p[p] == 1.0 for one in problems)


def _chances(problems: Sequence[ProblemReport], largest: int) -> list[Chance]:
    rows = []
    for k in (*(k for k in KS if k < largest), largest):
        values = [
            one.value for problem in problems for one in problem.pass_at_k if one.k == k and one.value is not None
        ]
        if values:
            rows.append(Chance(k=k, problems=len(values), value=_mean(values, mean)))
    return rows


def _mean(values: Sequence[float], statistic: Callable[[Floats], float]) -> Estimate:
    """With a bootstrap over problems, as in the report; of one problem, and of equal ones, there is no interval."""
    if len(set(values)) < 2:
        return Estimate(value=statistic(np.asarray(values)), low=None, high=None)
    return _estimate(bootstrap_interval(values, statistic))


def _estimate(found: Interval) -> Estimate:
    return Estimate(value=found.value, low=found.low, high=found.high)


def _settings(reports: Sequence[Report]) -> tuple[SettingRow, ...]:
    """All settings and facts, in the order in which the first run has them."""
    each = [settings_of(report) for report in reports]
    names = dict.fromkeys(name for one in each for name in one)
    rows = ((name, tuple(one.get(name) for one in each)) for name in names)
    return tuple(SettingRow(setting=name, values=values, differs=len(set(values)) > 1) for name, values in rows)


def _problems(reports: Sequence[Report], common: set[str], weak: set[str]) -> tuple[ProblemRow, ...]:
    cells = [{one.problem: _cell(n, one) for n, one in enumerate(report.problems, 1)} for report in reports]
    names = dict.fromkeys(name for one in cells for name in one)
    return tuple(
        ProblemRow(
            problem=name,
            weak=name in weak,
            common=name in common,
            cells=tuple(one.get(name) for one in cells),
        )
        for name in names
    )


def _cell(number: int, problem: ProblemReport) -> ProblemCell:
    return ProblemCell(
        number=number,
        state=problem.state,
        judged=problem.judged > 0,
        outcome=problem.outcome,
        solved=problem.solved,
        correct=problem.correct,
        best_speedup=problem.best_speedup,
        best_attempt=problem.best_attempt,
        best_sample=problem.best_sample,
    )
