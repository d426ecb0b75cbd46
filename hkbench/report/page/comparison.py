"""comparison.html: several runs side by side, made of the numbers in comparison.json and of nothing else.

Like the page of a run it is one file, and nothing on it is loaded or run: it has no script at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hkbench.headline import SEPARATOR, title_parts
from hkbench.records import Outcome
from hkbench.report import words
from hkbench.report.compare import Outcome as PairedOutcome
from hkbench.report.compare import Paired, Part
from hkbench.report.compare_words import caveats, outcome, points
from hkbench.report.model import ProblemState
from hkbench.report.page.comparison_figures import comparison_figures, share
from hkbench.report.page.render import environment
from hkbench.report.page.result import Part as BarPart
from hkbench.report.page.result import bar_parts
from hkbench.report.page.svg import RUNS
from hkbench.report.side_by_side import Against, ProblemCell, RunColumn, RunFigures, SideBySide
from hkbench.store.costs import money

Row = tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """A text that leads into a run's own report, where there is one; `outcome` gives it its colour."""

    text: str
    link: str | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True)
class AgainstPart:
    """A run against the first: its sentences and tables."""

    found: Against
    label: str
    title: str
    caveats: list[str]
    parts: list[tuple[str, str, list[Row]]]  #: title, conclusion and rows: of all problems, then without the weak
    flips: list[tuple[str, list[tuple[Cell, ...]]]]


def render_comparison(found: SideBySide, reports: Sequence[str | None]) -> str:
    """The page. `reports`: of each run, the address of its report.html from the page's folder, or `None`."""
    return environment().get_template("comparison.html").render(
        found=found,
        runs=[(run, f"run-{1 + i % len(RUNS)}", reports[i], _about(run)) for i, run in enumerate(found.runs)],
        labels=[run.label for run in found.runs],
        leaderboard=_leaderboard(found.runs),
        against=[_against(found, one, reports) for one in found.against],
        run_rows=_run_rows(found.runs),
        differing=[(row.setting, *map(_given, row.values)) for row in found.settings if row.differs],
        same=[(row.setting, _given(row.values[0])) for row in found.settings if not row.differs],
        headlines=_headlines([run.figures for run in found.runs]),
        headlines_without_weak=_headlines([run.figures_without_weak for run in found.runs]),
        work=_work([run.figures for run in found.runs]),
        figures=comparison_figures(found),
        standing=STANDING,
        seen=[o for o in Outcome if any(run.figures and run.figures.outcomes[o] for run in found.runs)],
        problems=_problem_rows(found, reports),
        left_out=_left_out(found),
    )  # fmt: skip


def _about(run: RunColumn) -> str:
    """Where a run lies, and its title without the model."""
    return SEPARATOR.join([run.folder, *title_parts(run.config, run.facts)[1:]])


def _given(value: str | None) -> str:
    return words.UNKNOWN if value is None else value


def _run_rows(runs: Sequence[RunColumn]) -> list[Row]:
    """What each run is, and how it stands over all of its own problems."""
    return [
        ("Model", *(run.config.model for run in runs)),
        ("Backend, device, sizes", *(f"{r.config.backend} on {r.config.device}, {r.config.sizes}" for r in runs)),
        ("Replies from", *(run.config.replay or "the model" for run in runs)),
        ("Started", *(run.facts.started for run in runs)),
        ("State", *("finished" if run.complete else f"incomplete: {run.incomplete_because}" for run in runs)),
        ("Problems", *(f"{run.own.problems}, {run.own.judged} judged" for run in runs)),
        ("Solved", *(f"{r.own.solved} of {r.own.judged}" for r in runs)),
        ("Mean speed-up", *(words.estimate(run.own.geometric_mean_speedup) for run in runs)),
    ]


def _label(found: SideBySide, name: str) -> str:
    return next(run.label for run in found.runs if run.name == name)


@dataclass(frozen=True)
class Standing:
    """A run in the leaderboard, over the common problems."""

    run: RunColumn
    hue: str
    bar: list[BarPart]
    figures: Row


STANDING = ("faster", "correct", "speed-up of the correct", "1x for the rest", "output tokens", "cost")


def _leaderboard(runs: Sequence[RunColumn]) -> list[Standing]:
    """One row a run, best first: by the share of faster problems, then by the mean over all problems."""
    rows = [
        (
            (-c.faster_share.value, -c.geometric_mean_speedup_all.value),
            Standing(
                run=run,
                hue=f"run-{1 + i % len(RUNS)}",
                bar=bar_parts(c.outcomes),
                figures=(
                    share(c.faster_share),
                    share(c.correct_share),
                    words.estimate(c.geometric_mean_speedup),
                    words.estimate(c.geometric_mean_speedup_all),
                    words.count(c.tokens_output),
                    words.cost(c.cost),
                ),
            ),
        )
        for i, run in enumerate(runs)
        if (c := run.figures) is not None
    ]
    return [standing for _, standing in sorted(rows, key=lambda pair: pair[0])]


def _headlines(columns: Sequence[RunFigures | None]) -> list[Row]:
    """By run, over the common problems; nothing where there are none."""
    known = [column for column in columns if column is not None]
    if not known:
        return []
    ks = sorted({chance.k for column in known for chance in column.pass_at_k})
    return [
        ("Problems", *(str(c.problems) for c in known)),
        ("Faster than PyTorch", *(f"{c.outcomes[Outcome.FASTER]}: {share(c.faster_share)}" for c in known)),
        ("Solved", *(f"{c.solved}: {share(c.solved_share)}" for c in known)),
        ("Correct", *(f"{c.correct}: {share(c.correct_share)}" for c in known)),
        ("Speed-up, geometric mean", *(words.estimate(c.geometric_mean_speedup) for c in known)),
        ("Speed-up, with 1x for the rest", *(words.estimate(c.geometric_mean_speedup_all) for c in known)),
        *((f"fast_{p}", *(share(c.fast_p[p]) for c in known)) for p in known[0].fast_p),
        *((f"pass@{k}", *(_chance(c, k) for c in known)) for k in ks),
    ]


def _chance(column: RunFigures, k: int) -> str:
    return next((share(chance.value) for chance in column.pass_at_k if chance.k == k), words.UNKNOWN)


def _work(columns: Sequence[RunFigures | None]) -> list[Row]:
    known = [column for column in columns if column is not None]
    if not known:
        return []
    return [
        ("Samples, correct of judged", *(f"{c.samples_correct} / {c.samples_judged}" for c in known)),
        ("Model calls, made and replayed", *(f"{c.calls_made} and {c.calls_replayed}" for c in known)),
        ("Input tokens", *(words.count(c.tokens_input) for c in known)),
        ("Output tokens", *(words.count(c.tokens_output) for c in known)),
        ("Cost", *(words.cost(c.cost) for c in known)),
        ("Cost of a solved problem", *(_per_solved(c) for c in known)),
        ("Time of model calls", *(words.duration(c.generation_seconds) for c in known)),
        ("Time of evaluations", *(words.duration(c.evaluation_seconds) for c in known)),
        ("Wall, summed over problems", *(words.duration(c.wall_seconds) for c in known)),
    ]


def _per_solved(column: RunFigures) -> str:
    if column.cost_per_solved is None:
        return words.UNKNOWN
    return money(column.cost_per_solved, column.cost.currency)


def _against(found: SideBySide, one: Against, reports: Sequence[str | None]) -> AgainstPart:
    comparison = one.comparison
    parts = [("All compared problems", one.conclusion, _paired_rows(comparison.whole, one.run))]
    if comparison.without_weak is not None and one.conclusion_without_weak is not None:
        rows = _paired_rows(comparison.without_weak, one.run)
        parts.append(("Without the weak problems", one.conclusion_without_weak, rows))
    return AgainstPart(
        found=one,
        label=_label(found, one.run),
        title=f"{_label(found, one.run)} against {found.runs[0].label}",
        caveats=list(caveats(comparison, _label(found, one.run), found.runs[0].label)),
        parts=parts,
        flips=_flips(found, one, reports),
    )


def _paired_rows(part: Part, run: str) -> list[Row]:
    """Headline, A, the other run, the difference with its interval, problems that differ, what it comes to."""
    n, a, b = part.problems, part.a, part.b
    rows = [
        ("Solved", f"{a.solved} of {n}", f"{b.solved} of {n}", *_difference(part.solved)),
        ("Correct", f"{a.correct} of {n}", f"{b.correct} of {n}", *_difference(part.correct)),
    ]
    if part.speedup is not None:
        ratio = f"{words.estimate(part.speedup.difference)} ({run} / A)"
        speed = (words.ratio(a.geometric_mean_speedup), words.ratio(b.geometric_mean_speedup), ratio)
        rows.append((f"Speed-up, {part.speedup.problems} correct in both", *speed, *_settled(part.speedup)))
    rows += [
        (f"fast_{p}", words.percent(a.fast_p[p]), words.percent(b.fast_p[p]), *_difference(paired))
        for p, paired in part.fast_p.items()
    ]
    return rows + [
        (f"pass@{one.k}", words.percent(one.a), words.percent(one.b), *_difference(one.paired))
        for one in part.pass_at_k
    ]


def _difference(found: Paired) -> Row:
    return points(found.difference), *_settled(found)


def _settled(found: Paired) -> Row:
    word = (
        "the same"
        if found.differ == 0
        else "not settled"
        if found.outcome is PairedOutcome.OPEN
        else found.outcome.value
    )
    return f"{found.differ} of {found.problems}", word


def _flips(found: SideBySide, one: Against, reports: Sequence[str | None]) -> list[tuple[str, list[tuple[Cell, ...]]]]:
    """What flipped, and the problems: name, then what became of them in A and in the other run."""
    rows = {row.problem: row for row in found.problems}
    other = [run.name for run in found.runs].index(one.run)

    def cells(name: str) -> tuple[Cell, ...]:
        given = rows[name].cells
        return Cell(name), _cell(given[0], reports[0]), _cell(given[other], reports[other])

    flips, label, first = one.comparison.flips, found.runs[other].label, found.runs[0].label
    kinds = (
        (f"solved by {label} only", flips.solved_only_b),
        (f"solved by {first} only", flips.solved_only_a),
        (f"correct by {label} only", flips.correct_only_b),
        (f"correct by {first} only", flips.correct_only_a),
    )
    return [(what, [cells(name) for name in names]) for what, names in kinds]


def _cell(cell: ProblemCell | None, report: str | None) -> Cell:
    if cell is None:
        return Cell(words.UNKNOWN)
    text = outcome(cell.best_speedup) if cell.judged else "not judged"
    if cell.state is not ProblemState.FINISHED:
        text += "*"
    return Cell(text, f"{report}#p{cell.number}" if report is not None else None, cell.outcome)


def _problem_rows(found: SideBySide, reports: Sequence[str | None]) -> list[tuple[str, bool, list[Cell], list[str]]]:
    """Of each problem: name, whether it is weak, its cells, and the ratio to A's speed-up for each other run."""
    ratios = [
        {one.problem: words.ratio(one.ratio) + "*" * one.apart for one in against.comparison.problems}
        for against in found.against
    ]
    return [
        (
            row.problem,
            row.weak,
            [_cell(cell, report) for cell, report in zip(row.cells, reports, strict=True)],
            [each.get(row.problem, "") for each in ratios],
        )
        for row in found.problems
    ]


def _left_out(found: SideBySide) -> list[Row]:
    """Problems that are not compared, by the run that is compared with A, with the reason."""
    return [
        (problem, f"{_label(found, one.run)} against {found.runs[0].label}", reason)
        for one in found.against
        for problem, reason in one.comparison.left_out.items()
    ]
