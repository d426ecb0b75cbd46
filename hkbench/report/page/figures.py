"""The figures of the page. Each is made of the report's own numbers and carries them as a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hkbench.headline import is_timed
from hkbench.records import CORRECT, SOLVED, Status
from hkbench.report import format as fmt
from hkbench.report.model import FAST_P, Overall, Report
from hkbench.report.page.axes import HALF, Figure, made_figure, ratio_axis, whole_ticks
from hkbench.report.page.scores import score_figure
from hkbench.report.page.svg import ACCENT, FAST, MUTED, SLOW
from hkbench.stats import best_of_k, fast_p, pass_at_k

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


def figures(report: Report) -> dict[str, Figure]:
    """Return the figures for which the run has numbers, by name."""
    made = [_fast_p(report), _attempts(report.overall), _samples(report)]
    if is_timed(report.config):
        made.append(score_figure(report.problems))
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
        axes.set_xlabel("p, times as fast as PyTorch")
        axes.set_ylabel("% of judged problems")

    at_one = fmt.percent(report.overall.fast_p["1"])
    return made_figure(
        "fast-p",
        "fast_p",
        f"fast_p falls from {fmt.percent(report.overall.fast_p['0'])} at p = 0 to {at_one} at p = 1.",
        "Share of the judged problems whose best correct sample has a speed-up > p, as in KernelBench (p = 0: that "
        "have a correct sample). It goes by the estimate: a kernel at 1.01x [0.99, 1.03] counts at p = 1.",
        (HALF, 2.9),
        draw,
        ("p", "share of judged problems"),
        [(f"{p:g}", fmt.percent(report.overall.fast_p[f"{p:g}"])) for p in FAST_P],
    )


def _attempts(overall: Overall) -> Figure | None:
    gains = overall.attempts
    if len(gains) < 2:
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
        "Progress over attempts",
        f"After attempt 1 {gains[0].solved} problems are solved, after attempt {last.attempt} {last.solved}.",
        f"Of {overall.problems} problems, those with a correct and with a solving sample so far.",
        (HALF, 2.9),
        draw,
        ("after attempt", "problems in it", "solved", "gained", "correct", "mean of these"),
        [
            (
                str(gain.attempt), str(gain.problems_tried), str(gain.solved), f"+{gain.newly_solved}",
                str(gain.correct), fmt.ratio(gain.geometric_mean_speedup),
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
    """Return 1, 2, ..., 16, then doubling, up to the largest: a curve needs no more points."""
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
        correct = [pass_at_k(len(s), sum(x.outcome in CORRECT for x in s), k) for s in enough]
        solved = [pass_at_k(len(s), sum(x.status in SOLVED for x in s), k) for s in enough]
        logs = [best_of_k([math.log(max(1.0, x.speedup.value)) if x.speedup else 0.0 for x in s], k) for s in enough]
        n = len(enough)
        rows.append(_OfK(k, n, sum(correct) / n, sum(solved) / n, math.exp(sum(logs) / n)))
    return rows


def _samples(report: Report) -> Figure | None:
    rows = _of_k(report)
    if len(rows) < 2:
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
        "Best of k samples",
        f"One sample of attempt 1 is correct with {fmt.percent(rows[0].correct)}, "
        f"one of {last.k} with {fmt.percent(last.correct)}.",
        "k samples of attempt 1, by the estimator of pass@k. Right: the mean speed-up (geometric, over problems) when "
        "the best of k is kept, and the baseline where none is correct and faster.",
        (HALF, 2.9),
        draw,
        ("k", "problems", "correct (pass@k)", "solved", "best of k"),
        [
            (str(r.k), str(r.problems), fmt.percent(r.correct), fmt.percent(r.solved), fmt.ratio(r.speedup))
            for r in rows
        ],
    )
