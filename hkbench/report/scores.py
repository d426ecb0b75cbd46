"""How the speed-up of a problem went over its attempts, and PROBLEM/score.png."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hkbench.headline import is_timed
from hkbench.report.model import ProblemReport, Report
from hkbench.store.files import write_atomic
from hkbench.store.layout import RunPaths
from hkbench.store.sanitize import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = 60  #: characters of a problem's name above it


@dataclass(frozen=True)
class Score:
    """One attempt with a judged sample. Speed-ups; `None`: nothing was correct."""

    attempt: int
    speedup: float | None  #: of its best sample
    best: float | None  #: so far
    led_to_best: bool = False  #: the best kernel is its own, or was made from it


@dataclass(frozen=True)
class Colours:
    score: str
    best: str
    failed: str
    rule: str  #: of the line at 1x


#: Okabe and Ito's, which differ for everybody; markers differ too.
_PICTURE = Colours(score="#0072B2", best="#E69F00", failed="#D55E00", rule="#777777")


def scores(problem: ProblemReport) -> list[Score]:
    """Return the attempts that reached a verdict, in order."""
    found: dict[int, float] = {}
    for sample in problem.samples:
        if sample.speedup is not None:
            found[sample.attempt] = max(sample.speedup.value, found.get(sample.attempt, 0.0))
    return [
        Score(one.attempt, found.get(one.attempt), one.best_speedup_so_far, one.led_to_best)
        for one in problem.attempts
        if one.judged
    ]


def bounds(curves: Sequence[Sequence[Score]]) -> tuple[float, float]:
    """Return the bounds of an axis that holds all of them, 1x included, with room below for what failed."""
    values = [one.speedup for curve in curves for one in curve if one.speedup is not None]
    return min([0.8, *values]) / 1.5, max([1.25, *values]) * 1.25


def draw_scores(axes: Axes, curve: Sequence[Score], low: float, colours: Colours) -> None:
    """Draw a line of the best so far, a point an attempt, a cross at the bottom where nothing was correct.

    A ring is around each attempt that the best kernel goes back to, unless there is no other.
    """
    right = [(one.attempt, one.speedup) for one in curve if one.speedup is not None]
    way = [(one.attempt, one.speedup) for one in curve if one.speedup is not None and one.led_to_best]
    best = [(one.attempt, one.best) for one in curve if one.best is not None]
    failed = [one.attempt for one in curve if one.speedup is None]
    axes.axhline(1.0, color=colours.rule, linewidth=0.9, linestyle=(0, (4, 3)))
    if best:
        axes.step(*zip(*best, strict=True), where="post", color=colours.best, label="best so far")
    if right:
        axes.plot(*zip(*right, strict=True), "o", color=colours.score, markersize=4, label="attempt's best sample")
    if 1 < len(way) < len(curve):
        axes.plot(
            *zip(*way, strict=True), "o", label="led to the best",
            markersize=8, markerfacecolor="none", markeredgecolor=colours.best, markeredgewidth=1.4,
        )  # fmt: skip
    if failed:
        axes.plot(
            failed, [low * 1.15] * len(failed), "x", color=colours.failed, markersize=5, label="no correct kernel"
        )


def write_scores(report: Report, paths: RunPaths) -> None:
    """Write score.png of each problem with a verdict, where the strategy is stepwise and times it; `OSError` passes."""
    if not report.config.strategy.stepwise or not is_timed(report.config):
        return
    for problem in report.problems:
        curve = scores(problem)
        if curve:
            write_atomic(paths.problem(problem.problem).score, _picture(problem.problem, curve))


def _picture(name: str, curve: Sequence[Score]) -> bytes:
    """Return a PNG; the same bytes for the same scores."""
    import matplotlib as mpl  # half a second: only where figures are drawn
    from matplotlib.figure import Figure

    from hkbench.report.page.axes import ratio_ticks, whole_ticks

    out = io.BytesIO()
    low, high = bounds([curve])
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        mpl.rcdefaults()  # a matplotlibrc of the user's has no say
        mpl.rcParams.update({"text.parse_math": False, "font.family": "DejaVu Sans"})
        figure = Figure(figsize=(6.4, 3.6), dpi=100)
        figure.subplots_adjust(left=0.12, right=0.97, top=0.9, bottom=0.14)
        axes = figure.add_subplot()
        axes.set_yscale("log")
        axes.set_ylim(low, high)
        axes.set_yticks(*ratio_ticks(low, high))
        axes.set_yticks([], minor=True)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        draw_scores(axes, curve, low, _PICTURE)
        whole_ticks(axes, range(1, curve[-1].attempt + 1))
        axes.set_title(one_line(name, TITLE), fontsize=11)
        axes.set_xlabel("attempt")
        axes.set_ylabel("speed-up (logarithmic)")
        axes.legend(fontsize=8, loc="best")
        figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()
