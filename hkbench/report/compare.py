"""Compare runs, each with the first: over the problems that both judged, and over those that all did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from hkbench.errors import UsageError
from hkbench.headline import model_name
from hkbench.records import Outcome, RunConfig
from hkbench.report.aggregate import cost_per_solved, failure_counts
from hkbench.report.comparison import (
    NAMES,
    Against,
    Chance,
    Comparison,
    ProblemCell,
    ProblemRow,
    RankBy,
    RunColumn,
    RunFigures,
    SettingRow,
)
from hkbench.report.definitions import COMPARISON_DEFINITIONS
from hkbench.report.model import FAST_P, Estimate, Headline, ProblemReport, Report
from hkbench.report.paired import KS, above, chance, left_out_of, mean, paired_with, run_totals, versus
from hkbench.report.settings import differences, mixed, obstacles, recalled, setting_rows, unlike
from hkbench.stats import Floats, bootstrap_interval, geometric_mean, share_interval
from hkbench.store.sanitize import one_line

_LABEL = 40  #: characters of a model and of a folder


def compare(runs: Sequence[tuple[str, Report]], *, force: bool = False, rank_by: RankBy = RankBy.FASTER) -> Comparison:
    """Compare each run with the first; each comes with the name of its folder. They are ranked by `rank_by`.

    Raises:
        UsageError: fewer than two runs, or more than there are letters; a run measured nothing; a run was measured on
            another device, at other sizes, or with an experience where another has none (unless `force`); a run has no
            judged problem in common with the first.
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
    settings = setting_rows(reports)
    if not force:
        _check_alike(settings, len(runs))
    against = tuple(
        _against(reports[0], other, NAMES[i], (labels[0], labels[i])) for i, other in enumerate(reports[1:], 1)
    )
    excluded = {name for one in against for name in one.left_out}
    common = tuple(one.problem for one in reports[0].problems if one.problem not in excluded)
    weak = {one.problem for report in reports for one in report.problems if one.weak}
    strong = tuple(name for name in common if name not in weak)
    columns = [_column(NAMES[i], labels[i], folder, report, common, strong) for i, (folder, report) in enumerate(runs)]
    return Comparison(
        runs=tuple(columns),
        rank_by=rank_by,
        ranking=_ranking(columns, rank_by),
        settings=settings,
        common=common,
        common_weak=tuple(name for name in common if name in weak),
        against=against,
        problems=_rows(reports, against, common, weak),
        worse=any(one.worse for one in against),
        definitions=COMPARISON_DEFINITIONS,
    )


def labels_of(runs: Sequence[tuple[str, RunConfig]]) -> list[str]:
    """Return the model of each run; where two are equal add the folder's name, and a letter if that is equal too."""
    models = [one_line(model_name(config), _LABEL) for _, config in runs]
    longer = [
        f"{model} ({one_line(Path(folder).name, _LABEL)})" if models.count(model) > 1 else model
        for model, (folder, _) in zip(models, runs, strict=True)
    ]
    return [f"{label} {NAMES[i]}" if longer.count(label) > 1 else label for i, label in enumerate(longer)]


def _check_alike(settings: Sequence[SettingRow], runs: int) -> None:
    for place in range(1, runs):
        found, names = differences(settings, place), (NAMES[place], NAMES[0])
        said = [say(these, *names) for these, say in ((obstacles(found), unlike), (mixed(found), recalled)) if these]
        if said:
            raise UsageError(f"{' '.join(said)} --force compares them all the same")


def _against(first: Report, other: Report, run: str, labels: tuple[str, str]) -> Against:
    found = paired_with(first, other, run, labels)
    if found is None:
        reasons = "\n".join(f"  {name}: {reason}" for name, reason in left_out_of(first, other, run).items())
        raise UsageError(f"no problem was finished in both A and {run}:\n{reasons}")
    return found


def _ranking(runs: Sequence[RunColumn], by: RankBy) -> tuple[str, ...]:
    """Return the names of the runs, best first; equals in the order in which they were named."""

    def score(figures: RunFigures) -> tuple[float, ...]:
        usual = (figures.faster_share.value, figures.geometric_mean_speedup_all.value)
        return usual if by is RankBy.FASTER else (figures.sol or 0.0, *usual)

    scores = {run.name: score(run.figures) for run in runs if run.figures is not None}
    return tuple(sorted(scores, key=lambda name: scores[name], reverse=True))


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
    totals = run_totals(problems)
    speedups = [one.best_speedup.value for one in problems if one.best_speedup is not None]
    found = [one.outcome for one in problems]
    kept = [max(1.0, one.best_speedup.value) if one.best_speedup is not None else 1.0 for one in problems]
    above_p = {p: int(sum(above(one, p) for one in problems)) for p in FAST_P}
    return RunFigures(
        **dict(totals),
        outcomes={outcome: found.count(outcome) for outcome in Outcome},
        faster_share=Estimate.of(share_interval(found.count(Outcome.FASTER), count)),
        solved_share=Estimate.of(share_interval(totals.solved, count)),
        correct_share=Estimate.of(share_interval(totals.correct, count)),
        fast_p={f"{p:g}": Estimate.of(share_interval(reached, count)) for p, reached in above_p.items()},
        pass_at_k=tuple(_chances(problems, report.config.samples)),
        geometric_mean_speedup=_mean(speedups, geometric_mean) if speedups else None,
        geometric_mean_speedup_all=_mean(kept, geometric_mean),
        sol=sum(one.best_sol.fraction for one in problems if one.best_sol) / count
        if any(one.best_sol for one in problems)
        else None,
        samples_judged=sum(one.judged for one in problems),
        samples_correct=sum(one.correct_samples for one in problems),
        model_failures=failure_counts((f.stage, f.kind, f.count) for one in problems for f in one.model_failures),
        calls_made=sum(one.calls.made for one in problems),
        calls_replayed=sum(one.calls.replayed for one in problems),
        cost_per_solved=cost_per_solved(totals.cost, totals.solved),
    )


def _chances(problems: Sequence[ProblemReport], largest: int) -> list[Chance]:
    rows = []
    for k in (*(k for k in KS if k < largest), largest):
        values = [value for problem in problems if (value := chance(problem, k)) is not None]
        if values:
            rows.append(Chance(k=k, problems=len(values), value=_mean(values, mean)))
    return rows


def _mean(values: Sequence[float], statistic: Callable[[Floats], float]) -> Estimate:
    """Return the mean with a bootstrap interval over problems; none for one problem, or for equal ones."""
    if len(set(values)) < 2:
        return Estimate(value=statistic(np.asarray(values)), low=None, high=None)
    return Estimate.of(bootstrap_interval(values, statistic))


def _rows(
    reports: Sequence[Report], against: Sequence[Against], common: Sequence[str], weak: set[str]
) -> tuple[ProblemRow, ...]:
    firsts = {one.problem: one for one in reports[0].problems}
    not_compared = (firsts.keys(), *(one.left_out.keys() for one in against))  # the first is not compared with itself
    columns = [
        {
            one.problem: _cell(number, one, None if one.problem in left_out else firsts[one.problem])
            for number, one in enumerate(report.problems, 1)
        }
        for report, left_out in zip(reports, not_compared, strict=True)
    ]
    names = dict.fromkeys(name for column in columns for name in column)
    return tuple(
        ProblemRow(
            problem=name,
            weak=name in weak,
            common=name in common,
            cells=tuple(column.get(name) for column in columns),
        )
        for name in names
    )


def _cell(number: int, problem: ProblemReport, first: ProblemReport | None) -> ProblemCell:
    """Return the cell; `first`: the problem in the run that it is compared with."""
    computed = {"number", "judged", "versus"}
    return ProblemCell(
        number=number,
        judged=problem.judged > 0,
        versus=versus(first, problem) if first is not None else None,
        **{name: getattr(problem, name) for name in ProblemCell.model_fields if name not in computed},
    )
