"""The figures of several runs side by side, over the problems that are common to them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING

from hkbench.records import Outcome
from hkbench.report import format as fmt
from hkbench.report.aggregate import failure_counts
from hkbench.report.compare_words import outcome
from hkbench.report.comparison import Comparison, ProblemCell, ProblemRow, RunColumn, RunFigures
from hkbench.report.model import Estimate
from hkbench.report.page.axes import FULL, HALF, LABEL, Figure, made_figure, name_rows, ratio_axis, whole_ticks
from hkbench.report.page.svg import MUTED, RUNS
from hkbench.stats import fast_p
from hkbench.store.sanitize import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_LEGEND = 30  #: characters of a run in a legend
_ROW = 0.12  # inches of one run in a row
_MARKERS = ("o", "s", "^", "D", "v")
_LINES = ("-", "--", "-.", ":")

Drawn = Sequence[tuple[RunColumn, RunFigures]]


def comparison_figures(found: Comparison) -> dict[str, Figure]:
    """Return the figures for which the common problems have numbers, by name."""
    runs = [(run, run.figures) for run in found.runs if run.figures is not None]
    rows = [row for row in found.problems if row.common]
    made = (_fast_p(runs, rows), _speedups(found.runs, rows), _chances(runs), _failures(runs))
    return {figure.name: figure for figure in made if figure is not None}


def _looks(count: int) -> list[tuple[str, str, str]]:
    """Return colour, marker and line of each run: told apart without colours too."""
    return list(islice(zip(cycle(RUNS), cycle(_MARKERS), cycle(_LINES), strict=False), count))


def _legend(run: RunColumn) -> str:
    return one_line(run.label, _LEGEND)


def _cells(row: ProblemRow) -> list[ProblemCell]:
    """Return the cells of a common problem: every run has it."""
    return [cell for cell in row.cells if cell is not None]


def _best(rows: Sequence[ProblemRow], run: int) -> list[float]:
    speedups = [_cells(row)[run].best_speedup for row in rows]
    return [speedup.value for speedup in speedups if speedup is not None]


def _fast_p(runs: Drawn, rows: Sequence[ProblemRow]) -> Figure | None:
    each = [_best(rows, i) for i in range(len(runs))]
    every = [value for values in each for value in values]
    if not every:
        return None

    def draw(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        low, high = min(0.4, *every) / 1.2, max(2.5, *every) * 1.2
        for (run, _), speedups, (colour, _, line) in zip(runs, each, _looks(len(runs)), strict=True):
            steps = [low, *sorted(speedups), high]
            shares = [100 * fast_p(speedups, len(rows), p) for p in steps]
            axes.step(steps, shares, line, where="post", color=colour, label=_legend(run))
        axes.axvline(1.0, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
        ratio_axis(axes, low, high)
        axes.set_ylim(0, 105)
        axes.set_xlabel("p, times as fast as PyTorch")
        axes.set_ylabel("% of common problems")
        axes.legend(loc="best")

    at_one = ", ".join(f"{run.label} {fmt.percent(figures.fast_p['1'].value)}" for run, figures in runs)
    return made_figure(
        "fast-p",
        "fast_p",
        f"At p = 1: {at_one}.",
        "Share of the common problems whose best correct sample has a speed-up > p, as in KernelBench.",
        (HALF, 2.9),
        draw,
        ("p", *(run.label for run, _ in runs)),
        [(p, *(share(figures.fast_p[p]) for _, figures in runs)) for p in runs[0][1].fast_p],
    )


def share(found: Estimate) -> str:
    """Return a share with its interval."""
    if found.low is None or found.high is None:
        return fmt.percent(found.value)
    return f"{fmt.percent(found.value)} [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def _sorted(rows: Sequence[ProblemRow]) -> list[ProblemRow]:
    """Return problems that some run has correct, by the first run's speed-up, then by the others'."""
    shown = [row for row in rows if any(cell.best_speedup for cell in _cells(row))]
    return sorted(shown, key=lambda row: [-(c.best_speedup.value if c.best_speedup else 0.0) for c in _cells(row)])


def _speedups(runs: Sequence[RunColumn], rows: Sequence[ProblemRow]) -> Figure | None:
    shown = _sorted(rows)
    if not shown:
        return None
    step = 0.8 / len(runs)  # of a row's height, from one run to the next

    def draw(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        ends = [_ends(cell.best_speedup) for row in shown for cell in _cells(row) if cell.best_speedup]
        low = min(0.8, *(low for low, _ in ends)) / 1.3
        high = max(1.25, *(high for _, high in ends)) * 1.15
        for i, (run, (colour, marker, _)) in enumerate(zip(runs, _looks(len(runs)), strict=True)):
            places = [row + step * (i - (len(runs) - 1) / 2) for row in range(len(shown))]
            cells = [_cells(row)[i].best_speedup for row in shown]
            there = [(place, best) for place, best in zip(places, cells, strict=True) if best is not None]
            lines = [_ends(best) for _, best in there]
            at = [place for place, _ in there]
            axes.hlines(at, [a for a, _ in lines], [b for _, b in lines], color=colour, linewidth=1.2)
            axes.plot(
                [best.value for _, best in there],
                at,
                marker,
                color=colour,
                markersize=4.2,
                label=_legend(run),
            )
            absent = [place for place, best in zip(places, cells, strict=True) if best is None]
            axes.plot([low * 1.06] * len(absent), absent, "x", color=colour, markersize=4.2)
        axes.axvline(1.0, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
        ratio_axis(axes, low, high)
        axes.set_xlabel("best speed-up, with its 95 % interval")
        name_rows(axes, [one_line(row.problem, LABEL) for row in shown])
        for edge in range(1, len(shown)):
            axes.axhline(edge - 0.5, color=MUTED, linewidth=0.3, alpha=0.4)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=min(len(runs), 4), borderaxespad=0)

    faster = [sum(_cells(row)[i].outcome is Outcome.FASTER for row in shown) for i in range(len(runs))]
    counts = ", ".join(f"{run.label} {count}" for run, count in zip(runs, faster, strict=True))
    return made_figure(
        "speedups",
        "Speed-up of each problem",
        f"Of {len(shown)} common problems with a correct kernel in some run, faster than PyTorch: {counts}.",
        "The best correct sample of each problem in each run, on a logarithmic scale, sorted by the first run's. A "
        "cross at the left edge: the run has no correct kernel.",
        (FULL, 1.1 + (_ROW * len(runs) + 0.1) * len(shown)),
        draw,
        ("problem", *(run.label for run in runs)),
        [(row.problem, *(outcome(c.best_speedup) for c in _cells(row))) for row in shown],
        wide=True,
    )


def _ends(found: Estimate) -> tuple[float, float]:
    """Return the interval; the value itself where there is none."""
    if found.low is None or found.high is None:
        return found.value, found.value
    return found.low, found.high


def _chances(runs: Drawn) -> Figure | None:
    ks = sorted({chance.k for _, figures in runs for chance in figures.pass_at_k})
    if not ks:
        return None

    def draw(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        for i, ((run, figures), (colour, marker, line)) in enumerate(zip(runs, _looks(len(runs)), strict=True)):
            beside = 0.04 * (i - (len(runs) - 1) / 2)  # so that intervals do not hide each other
            k = [chance.k + beside for chance in figures.pass_at_k]
            axes.plot(
                k,
                [100 * c.value.value for c in figures.pass_at_k],
                marker + line,
                color=colour,
                label=_legend(run),
            )
            ends = [_ends(chance.value) for chance in figures.pass_at_k]
            axes.vlines(k, [100 * low for low, _ in ends], [100 * high for _, high in ends], color=colour, linewidth=1)
        axes.set_ylim(-3, 105)
        whole_ticks(axes, ks)
        axes.set_xlabel("samples k")
        axes.set_ylabel("% chance")
        axes.legend(loc="best")

    return made_figure(
        "samples",
        "pass@k",
        "One sample of attempt 1 is correct with: "
        + ", ".join(f"{run.label} {fmt.percent(figures.pass_at_k[0].value.value)}" for run, figures in runs
                    if figures.pass_at_k) + ".",
        "Chance that one of k samples of attempt 1 is correct, with its 95 % interval over problems.",
        (HALF, 2.9),
        draw,
        ("k", *(run.label for run, _ in runs)),
        [(str(k), *(chance_of(figures, k) for _, figures in runs)) for k in ks],
    )  # fmt: skip


def chance_of(figures: RunFigures, k: int) -> str:
    """Return pass@k with its interval."""
    return next((share(chance.value) for chance in figures.pass_at_k if chance.k == k), fmt.UNKNOWN)


def _failures(runs: Drawn) -> Figure | None:
    kinds = [(f.stage, f.kind) for f in failure_counts(
        (f.stage, f.kind, f.count) for _, figures in runs for f in figures.model_failures)]  # fmt: skip
    if not kinds:
        return None
    counts = [{(f.stage, f.kind): f.count for f in figures.model_failures} for _, figures in runs]
    step = 0.8 / len(runs)

    def draw(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        for i, ((run, figures), (colour, _, _)) in enumerate(zip(runs, _looks(len(runs)), strict=True)):
            places = [row + step * (i - (len(runs) - 1) / 2) for row in range(len(kinds))]
            shares = [100 * counts[i].get(kind, 0) / max(1, figures.samples_judged) for kind in kinds]
            bars = axes.barh(places, shares, step * 0.85, color=colour, label=_legend(run))
            axes.bar_label(bars, [str(counts[i].get(kind, 0)) for kind in kinds], padding=3, color=MUTED, fontsize=7)
        axes.margins(x=0.12)
        axes.set_xlabel("% of the judged samples; how many at the bar")
        name_rows(axes, [f"{stage}: {kind}" for stage, kind in kinds])
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=min(len(runs), 4), borderaxespad=0)

    failed = ", ".join(
        f"{run.label} {sum(counts[i].values())} of {figures.samples_judged}" for i, (run, figures) in enumerate(runs)
    )
    return made_figure(
        "failures",
        "Failures by stage and kind",
        f"Samples that failed: {failed}.",
        "Samples of the common problems that are not correct or were refused, in the order of the stages.",
        (FULL, 1.1 + (_ROW * len(runs) + 0.1) * len(kinds)),
        draw,
        ("stage", "kind", *(f"{run.label}, of {figures.samples_judged}" for run, figures in runs)),
        [(stage, kind, *(str(count.get((stage, kind), 0)) for count in counts)) for stage, kind in kinds],
        wide=True,
    )
