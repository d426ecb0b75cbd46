"""The figures of the page. Each is made of the report's own numbers and carries them as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hkbench.records import Status
from hkbench.report import words
from hkbench.report.model import FAST_P, Overall, ProblemReport, Report
from hkbench.report.page.axes import FULL, HALF, LABEL, Figure, made_figure, name_rows, ratio_axis, whole_ticks
from hkbench.report.page.scores import score_figure
from hkbench.report.page.svg import ACCENT, FAILED, FAST, MUTED, SLOW
from hkbench.stats import best_of_k, fast_p, pass_at_k
from hkbench.store.plain import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_ROW = 0.21  # inches of a problem's row


def figures(report: Report, floors: Mapping[str, float]) -> dict[str, Figure]:
    """The figures for which the run has numbers, by name.

    `floors`: by problem, the least time that the device can take over the best sample's, 0..1, where it is known.
    """
    made = (
        _fast_p(report),
        _speedups(report.problems, floors),
        _attempts(report.overall),
        _samples(report),
        score_figure(report.problems),
        _failures(report.overall),
        _times(report.problems),
    )
    return {figure.name: figure for figure in made if figure is not None}


def _fast_p(report: Report) -> Figure | None:
    total = report.overall.judged
    speedups = [problem.best_speedup.value for problem in report.problems if problem.best_speedup is not None]
    if not speedups or report.overall.fast_p is None:
        return None

    def draw(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        low, high = min(0.4, *speedups) / 1.2, max(2.5, *speedups) * 1.2
        steps = [low, *sorted(speedups), high]
        axes.step(steps, [100 * fast_p(speedups, total, p) for p in steps], where="post", color=ACCENT)
        axes.axvline(1.0, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
        ratio_axis(axes, low, high)
        axes.set_ylim(0, 105)
        axes.set_xlabel("p, times as fast as the baseline")
        axes.set_ylabel("% of judged problems")

    at_one = words.percent(report.overall.fast_p["1"])
    return made_figure(
        "fast-p",
        "fast_p",
        f"fast_p falls from {words.percent(report.overall.fast_p['0'])} at p = 0 to {at_one} at p = 1.",
        "Share of the judged problems whose best correct sample is more than p times as fast as the baseline.",
        (HALF, 2.9),
        draw,
        ("p", "share of judged problems"),
        [(f"{p:g}", words.percent(report.overall.fast_p[f"{p:g}"])) for p in FAST_P],
    )


def _speedups(problems: Sequence[ProblemReport], floors: Mapping[str, float]) -> Figure | None:
    shown = [problem for problem in problems if problem.best_speedup is not None]
    if not shown:
        return None
    names = [one_line(problem.problem, LABEL) for problem in shown]

    def draw(canvas: Canvas) -> None:
        ratios = [2, 1] if floors else [1]
        panels = canvas.subplots(1, len(ratios), sharey=True, squeeze=False, width_ratios=ratios)
        axes = panels[0][0]
        ends = [_ends(problem) for problem in shown]
        axes.hlines(range(len(shown)), [low for low, _ in ends], [high for _, high in ends], color=MUTED, linewidth=1.4)
        for solved, marker, colour in ((True, "o", FAST), (False, "s", SLOW)):
            rows = [row for row, problem in enumerate(shown) if problem.solved is solved]
            values = [shown[row].best_speedup for row in rows]
            axes.plot([v.value for v in values if v], rows, marker, color=colour)
        axes.axvline(1.0, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
        ratio_axis(axes, min(0.8, *(low for low, _ in ends)) / 1.15, max(1.25, *(high for _, high in ends)) * 1.15)
        axes.set_xlabel("best speed-up, with its 95 % interval")
        name_rows(axes, names)
        if floors:
            known = [(row, floors[p.problem]) for row, p in enumerate(shown) if p.problem in floors]
            panels[0][1].barh([row for row, _ in known], [100 * share for _, share in known], 0.6, color=ACCENT)
            panels[0][1].set_xlim(0, 100)
            panels[0][1].set_xlabel("% of the roofline")
            panels[0][1].grid(axis="y", visible=False)

    solved = sum(problem.solved for problem in shown)
    rows = [
        (problem.problem, words.estimate(problem.best_speedup), words.percent(floors.get(problem.problem)))
        for problem in shown
    ]
    roofline = (
        " Right: the least time that the device can take for the problem, over the time taken, where it is known."
        if floors
        else ""
    )
    return made_figure(
        "speedups",
        "Speed-up of each problem",
        f"Of {len(shown)} problems with a correct kernel {solved} are at least as fast as the baseline.",
        f"The best correct sample of each problem, on a logarithmic scale; round: solved, square: slow.{roofline}",
        (FULL, 0.9 + _ROW * len(shown)),
        draw,
        ("problem", "best speed-up", "of the roofline")[: 2 + bool(floors)],
        [row[: 2 + bool(floors)] for row in rows],
        wide=True,
    )


def _ends(problem: ProblemReport) -> tuple[float, float]:
    """The interval of the best speed-up; the value itself where there is none."""
    best = problem.best_speedup
    assert best is not None
    return best.low or best.value, best.high or best.value


def _attempts(overall: Overall) -> Figure | None:
    gains = overall.attempts
    if not gains:
        return None

    def draw(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        numbers = [gain.attempt for gain in gains]
        axes.plot(numbers, [gain.correct for gain in gains], "s--", color=SLOW, label="correct")
        axes.plot(numbers, [gain.solved for gain in gains], "o-", color=FAST, label="solved")
        axes.set_ylim(0, overall.problems * 1.05)
        whole_ticks(axes, numbers)
        axes.locator_params(axis="y", integer=True)
        axes.set_xlabel("after attempt")
        axes.set_ylabel("problems")
        axes.legend(loc="lower right")

    last = gains[-1]
    return made_figure(
        "attempts",
        "What attempts gained",
        f"After attempt 1 {gains[0].solved} problems are solved, after attempt {last.attempt} {last.solved}.",
        f"Of {overall.problems} problems, those with a correct and with a solving sample so far.",
        (HALF, 2.9),
        draw,
        ("after attempt", "problems in it", "solved", "gained", "correct", "mean of these"),
        [
            (
                str(gain.attempt), str(gain.problems_tried), str(gain.solved), f"+{gain.newly_solved}",
                str(gain.correct), words.ratio(gain.geometric_mean_speedup),
            )
            for gain in gains
        ],
    )  # fmt: skip


@dataclass(frozen=True)
class _OfK:
    """What k samples of attempt 1 come to, as a mean over the `problems` that have so many judged ones."""

    k: int
    problems: int
    correct: float
    solved: float
    speedup: float


def _ks(largest: int) -> list[int]:
    """1, 2, ..., 16, then doubling, up to the largest: a curve needs no more points."""
    ks = [k for k in (*range(1, 17), *(2**n for n in range(5, 64))) if k < largest]
    return [*ks, largest]


def _of_k(report: Report) -> list[_OfK]:
    """Correct and solved: pass@k. Speed-up: the best of k, or the baseline (1x) where none is correct and faster."""
    first = [
        [s for s in problem.samples if s.attempt == 1 and s.status not in (None, Status.COMPILED)]
        for problem in report.problems
    ]
    rows = []
    for k in _ks(report.config.samples):
        enough = [samples for samples in first if len(samples) >= k]
        if not enough:
            break
        correct = [pass_at_k(len(s), sum(x.speedup is not None for x in s), k) for s in enough]
        solved = [pass_at_k(len(s), sum(x.status is Status.FAST for x in s), k) for s in enough]
        logs = [best_of_k([math.log(max(1.0, x.speedup.value)) if x.speedup else 0.0 for x in s], k) for s in enough]
        n = len(enough)
        rows.append(_OfK(k, n, sum(correct) / n, sum(solved) / n, math.exp(sum(logs) / n)))
    return rows


def _samples(report: Report) -> Figure | None:
    rows = _of_k(report)
    if not rows:
        return None

    def draw(canvas: Canvas) -> None:
        shares, speed = canvas.subplots(1, 2)
        k = [row.k for row in rows]
        shares.plot(k, [100 * row.correct for row in rows], "s--", color=SLOW, label="correct (pass@k)")
        shares.plot(k, [100 * row.solved for row in rows], "o-", color=FAST, label="solved")
        shares.set_ylim(0, 105)
        shares.set_ylabel("% chance")
        shares.legend(loc="best")
        speed.plot(k, [row.speedup for row in rows], "o-", color=ACCENT)
        speed.set_ylim(min(0.95, *(row.speedup for row in rows)), max(1.1, *(row.speedup for row in rows)) * 1.05)
        speed.set_ylabel("best speed-up")
        speed.locator_params(axis="y", nbins=6)
        for axes in (shares, speed):
            whole_ticks(axes, k)
            axes.set_xlabel("samples k")

    last = rows[-1]
    return made_figure(
        "samples",
        "What samples gained",
        f"One sample of attempt 1 is correct with {words.percent(rows[0].correct)}, "
        f"one of {last.k} with {words.percent(last.correct)}.",
        "k samples of attempt 1, by the estimator of pass@k. Right: the mean speed-up (geometric, over problems) when "
        "the best of k is kept, and the baseline where none is correct and faster.",
        (HALF, 2.9),
        draw,
        ("k", "problems", "correct (pass@k)", "solved", "best of k"),
        [
            (str(r.k), str(r.problems), words.percent(r.correct), words.percent(r.solved), words.ratio(r.speedup))
            for r in rows
        ],
    )


def _failures(overall: Overall) -> Figure | None:
    found = overall.model_failures
    if not found:
        return None

    def draw(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        bars = axes.barh(range(len(found)), [failure.count for failure in found], 0.62, color=FAILED)
        axes.bar_label(bars, padding=3, color=MUTED)
        axes.set_xlim(0, 1.1 * max(failure.count for failure in found))
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("samples")
        name_rows(axes, [f"{failure.stage}: {failure.kind}" for failure in found])

    most = max(found, key=lambda failure: failure.count)
    return made_figure(
        "failures",
        "Failures by stage and kind",
        f"{sum(f.count for f in found)} samples failed; most often {most.kind} at {most.stage} ({most.count}).",
        "Samples that are not correct or were refused, in the order of the stages.",
        (HALF, 0.8 + _ROW * len(found)),
        draw,
        ("stage", "kind", "samples"),
        [(failure.stage, failure.kind, str(failure.count)) for failure in found],
    )


def _times(problems: Sequence[ProblemReport]) -> Figure | None:
    shown = [p for p in problems if p.generation_seconds or p.evaluation_seconds or p.tokens.output.total]
    if not shown:
        return None
    tokens = any(problem.tokens.output.total for problem in shown)

    def draw(canvas: Canvas) -> None:
        panels = canvas.subplots(1, 1 + tokens, sharey=True, squeeze=False)
        axes, rows = panels[0][0], range(len(shown))
        calls = [(problem.generation_seconds or 0.0) / 60 for problem in shown]
        judging = [(problem.evaluation_seconds or 0.0) / 60 for problem in shown]
        if any(calls):
            axes.barh(rows, calls, 0.62, color=SLOW, label="model calls")
        axes.barh(rows, judging, 0.62, left=calls, color=ACCENT, label="evaluations")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0)
        axes.set_xlabel("minutes, summed over samples")
        name_rows(axes, [one_line(problem.problem, LABEL) for problem in shown])
        if tokens:
            counts = [(problem.tokens.output.total or 0) / 1000 for problem in shown]
            panels[0][1].barh(rows, counts, 0.62, color=FAST)
            panels[0][1].set_xlabel("thousand output tokens")
            panels[0][1].locator_params(axis="x", nbins=5)
            panels[0][1].grid(axis="y", visible=False)

    return made_figure(
        "times",
        "Time and tokens of each problem",
        f"Minutes of work of {len(shown)} problems" + (" and their output tokens." if tokens else "."),
        "Time of model calls and of evaluations, which overlap" + ("." if tokens else "; no reply said its tokens."),
        (FULL, 1.1 + _ROW * len(shown)),
        draw,
        ("problem", "model calls", "evaluations", "wall", "input tokens", "output tokens", "cost"),
        [
            (
                p.problem, words.duration(p.generation_seconds), words.duration(p.evaluation_seconds),
                words.duration(p.wall_seconds), words.count(p.tokens.input), words.count(p.tokens.output),
                words.cost(p.cost),
            )
            for p in shown
        ],
        wide=True,
    )  # fmt: skip
