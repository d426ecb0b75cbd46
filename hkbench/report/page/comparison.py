"""comparison.html: several runs side by side, made of the numbers in comparison.json and of nothing else.

Like the page of a run it is one file, and nothing on it is loaded or run: it has no script at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hkbench.headline import SEPARATOR, title_parts
from hkbench.records import Outcome
from hkbench.report import format as fmt
from hkbench.report.compare_words import outcome, paired_rows
from hkbench.report.comparison import (
    Against,
    Comparison,
    Paired,
    Part,
    ProblemCell,
    RunColumn,
    RunFigures,
    Settled,
)
from hkbench.report.model import ProblemState
from hkbench.report.page.comparison_figures import chance_of, comparison_figures, share
from hkbench.report.page.render import environment
from hkbench.report.page.result import Part as BarPart, bar_parts
from hkbench.report.page.svg import RUNS
from hkbench.report.settings import caveats, differences

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


def render_comparison(found: Comparison, reports: Sequence[str | None]) -> str:
    """Return the page. `reports`: of each run, the address of its report.html from the page's folder, or `None`."""
    return environment().get_template("comparison.html").render(
        found=found,
        runs=[
            (run, _hue(i), reports[i], SEPARATOR.join([run.folder, *title_parts(run.config, run.facts)[1:]]))
            for i, run in enumerate(found.runs)
        ],
        labels=[run.label for run in found.runs],
        leaderboard=_leaderboard(found),
        against=[_against(found, place, reports) for place in range(1, len(found.runs))],
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


def _hue(place: int) -> str:
    return f"run-{1 + place % len(RUNS)}"


def _given(value: str | None) -> str:
    return fmt.UNKNOWN if value is None else value


def _run_rows(runs: Sequence[RunColumn]) -> list[Row]:
    """Return what each run is, and how it stands over all of its own problems."""
    return [
        ("Model", *(run.config.model for run in runs)),
        ("Backend, device, sizes", *(f"{r.config.backend} on {r.config.device}, {r.config.sizes}" for r in runs)),
        ("Replies from", *(run.config.replay or "the model" for run in runs)),
        ("Started", *(run.facts.started for run in runs)),
        ("State", *("finished" if run.complete else f"incomplete: {run.incomplete_because}" for run in runs)),
        ("Problems", *(f"{run.own.problems}, {run.own.judged} judged" for run in runs)),
        ("Solved", *(f"{r.own.solved} of {r.own.judged}" for r in runs)),
        ("Mean speed-up", *(fmt.estimate(run.own.geometric_mean_speedup) for run in runs)),
    ]


@dataclass(frozen=True)
class Standing:
    """A run in the leaderboard, over the common problems."""

    run: RunColumn
    hue: str
    bar: list[BarPart]
    figures: Row


STANDING = ("faster", "correct", "speed-up of the correct", "1x for the rest", "of the floor", "output tokens", "cost")


def _leaderboard(found: Comparison) -> list[Standing]:
    """Return one row a run, in the order of the ranking."""
    rows = {
        run.name: Standing(
            run=run,
            hue=_hue(i),
            bar=bar_parts(c.outcomes),
            figures=(
                share(c.faster_share),
                share(c.correct_share),
                fmt.estimate(c.geometric_mean_speedup),
                fmt.estimate(c.geometric_mean_speedup_all),
                fmt.percent(c.sol),
                fmt.count(c.tokens_output),
                fmt.cost(c.cost),
            ),
        )
        for i, run in enumerate(found.runs)
        if (c := run.figures) is not None
    }
    return [rows[name] for name in found.ranking]


def _headlines(columns: Sequence[RunFigures | None]) -> list[Row]:
    """Return the headlines by run, over the common problems; nothing where there are none."""
    known = [column for column in columns if column is not None]
    if not known:
        return []
    ks = sorted({chance.k for column in known for chance in column.pass_at_k})
    return [
        ("Problems", *(str(c.problems) for c in known)),
        ("Faster than PyTorch", *(f"{c.outcomes[Outcome.FASTER]}: {share(c.faster_share)}" for c in known)),
        ("Solved", *(f"{c.solved}: {share(c.solved_share)}" for c in known)),
        ("Correct", *(f"{c.correct}: {share(c.correct_share)}" for c in known)),
        ("Speed-up, geometric mean", *(fmt.estimate(c.geometric_mean_speedup) for c in known)),
        ("Speed-up, with 1x for the rest", *(fmt.estimate(c.geometric_mean_speedup_all) for c in known)),
        *((f"fast_{p}", *(share(c.fast_p[p]) for c in known)) for p in known[0].fast_p),
        *((f"pass@{k}", *(chance_of(c, k) for c in known)) for k in ks),
    ]


def _work(columns: Sequence[RunFigures | None]) -> list[Row]:
    known = [column for column in columns if column is not None]
    if not known:
        return []
    return [
        ("Samples, correct of judged", *(f"{c.samples_correct} / {c.samples_judged}" for c in known)),
        ("Model calls, made and replayed", *(f"{c.calls_made} and {c.calls_replayed}" for c in known)),
        ("Input tokens", *(fmt.count(c.tokens_input) for c in known)),
        ("Output tokens", *(fmt.count(c.tokens_output) for c in known)),
        ("Cost", *(fmt.cost(c.cost) for c in known)),
        ("Cost of a solved problem", *(fmt.money_or_unknown(c.cost_per_solved, c.cost.currency) for c in known)),
        ("Time of model calls", *(fmt.duration(c.generation_seconds) for c in known)),
        ("Time of evaluations", *(fmt.duration(c.evaluation_seconds) for c in known)),
        ("Wall, summed over problems", *(fmt.duration(c.wall_seconds) for c in known)),
    ]


def _against(found: Comparison, place: int, reports: Sequence[str | None]) -> AgainstPart:
    one, label, first = found.against[place - 1], found.runs[place].label, found.runs[0].label
    parts = [("All compared problems", one.whole.conclusion, _paired_rows(one.whole, one.run))]
    if (part := one.without_weak) is not None:
        parts.append(("Without the weak problems", part.conclusion, _paired_rows(part, one.run)))
    return AgainstPart(
        found=one,
        label=label,
        title=f"{label} against {first}",
        caveats=list(caveats(differences(found.settings, place), label, first)),
        parts=parts,
        flips=_flips(found, place, reports),
    )


def _paired_rows(part: Part, run: str) -> list[Row]:
    """Return figure, A, the other run, the difference with its interval, problems that differ, what it comes to."""
    return [
        (name, a, b, difference, f"{paired.differ} of {paired.problems}", _settled(paired))
        for name, a, b, difference, paired in paired_rows(part, run)
    ]


def _settled(found: Paired) -> str:
    if found.differ == 0:
        return "the same"
    return "not settled" if found.settled is Settled.OPEN else found.settled.value


def _flips(found: Comparison, place: int, reports: Sequence[str | None]) -> list[tuple[str, list[tuple[Cell, ...]]]]:
    """Return what flipped, and the problems: name, then what became of them in A and in the other run."""
    rows = {row.problem: row for row in found.problems}
    flips, label, first = found.against[place - 1].flips, found.runs[place].label, found.runs[0].label

    def cells(name: str) -> tuple[Cell, ...]:
        return Cell(name), *(_cell(rows[name].cells[run], reports[run]) for run in (0, place))

    kinds = (
        (f"solved by {label} only", flips.solved_only_b),
        (f"solved by {first} only", flips.solved_only_a),
        (f"correct by {label} only", flips.correct_only_b),
        (f"correct by {first} only", flips.correct_only_a),
    )
    return [(what, [cells(name) for name in names]) for what, names in kinds]


def _cell(cell: ProblemCell | None, report: str | None) -> Cell:
    if cell is None:
        return Cell(fmt.UNKNOWN)
    text = outcome(cell.best_speedup) if cell.judged else "not judged"
    if cell.state is not ProblemState.FINISHED:
        text += "*"
    return Cell(text, f"{report}#p{cell.number}" if report is not None else None, cell.outcome)


def _problem_rows(found: Comparison, reports: Sequence[str | None]) -> list[tuple[str, bool, list[Cell], list[str]]]:
    """Return each problem's name, whether it is weak, its cells, and the other runs' ratios to A's speed-up."""
    return [
        (
            row.problem,
            row.weak,
            [_cell(cell, report) for cell, report in zip(row.cells, reports, strict=True)],
            [_ratio(cell) for cell in row.cells[1:]],
        )
        for row in found.problems
    ]


def _ratio(cell: ProblemCell | None) -> str:
    if cell is None or cell.versus is None:
        return ""
    return fmt.ratio(cell.versus.ratio) + "*" * cell.versus.apart


def _left_out(found: Comparison) -> list[Row]:
    """Return problems that are not compared, by the run compared with A, with the reason."""
    return [
        (problem, f"{run.label} against {found.runs[0].label}", reason)
        for run, one in zip(found.runs[1:], found.against, strict=True)
        for problem, reason in one.left_out.items()
    ]
