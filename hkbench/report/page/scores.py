"""The score curves of the page: a small panel a problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hkbench.report import format as fmt
from hkbench.report.model import ProblemReport
from hkbench.report.page.axes import FULL, Figure, made_figure, ratio_ticks, whole_ticks
from hkbench.report.page.svg import ACCENT, FAILED, FAST, MUTED
from hkbench.report.scores import Colours, Score, bounds, draw_scores, scores
from hkbench.store.sanitize import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

PANELS = 24  #: at most
_COLUMNS = 4
_ROW, _WIDE_ROW, _EDGES = 1.35, 2.4, 0.75  # inches of a row of panels, of one alone, and of what is around them
_NAME = 26  # characters above a panel
_COLOURS = Colours(score=FAST, best=ACCENT, failed=FAILED, rule=MUTED)


def score_figure(problems: Sequence[ProblemReport]) -> Figure | None:
    """Draw the first `PANELS` problems with at least two judged attempts; `None` where there is none."""
    found = [(problem.problem, curve) for problem in problems if len(curve := scores(problem)) > 1]
    shown = found[:PANELS]
    if not shown:
        return None
    columns = min(_COLUMNS, len(shown))
    rows = math.ceil(len(shown) / columns)
    height = _EDGES + (_ROW if len(shown) > _COLUMNS else _WIDE_ROW) * rows
    low, high = bounds([curve for _, curve in shown])
    last = max(curve[-1].attempt for _, curve in shown)

    def draw(canvas: Canvas) -> None:
        canvas.set_layout_engine(None)  # fitting so many panels takes longer than all of the page
        grid = canvas.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        canvas.subplots_adjust(
            left=0.07, right=0.99, top=1 - 0.25 / height, bottom=0.45 / height, hspace=0.35, wspace=0.08
        )
        panels = grid.flatten()
        panels[0].set_yscale("log")
        panels[0].set_ylim(low, high)
        panels[0].set_yticks(*ratio_ticks(low, high))
        panels[0].set_yticks([], minor=True)
        whole_ticks(panels[0], range(1, last + 1))
        for panel, (name, curve) in zip(panels, shown, strict=False):
            draw_scores(panel, curve, low, _COLOURS)
            panel.set_title(one_line(name, _NAME))
            panel.grid(axis="x", visible=False)
        for panel in panels[len(shown) :]:
            panel.set_visible(False)
        for panel in panels[max(0, len(shown) - columns) : len(shown)]:
            panel.tick_params(labelbottom=True)
        canvas.supxlabel("attempt", fontsize="medium", color=MUTED, y=0.05 / height)

    more = f" The first {PANELS} of {len(found)} such problems." if len(found) > PANELS else ""
    return made_figure(
        "scores",
        "Speed-up over the attempts",
        f"Of {len(shown)} problems with several attempts {_risen(shown)} became faster after their first correct one.",
        "Each problem with at least two judged attempts, on one logarithmic scale. Points: the best sample of an "
        "attempt, with a ring where the problem's best kernel goes back to it; crosses: attempts without a correct "
        f"kernel; line: the best so far; dashed: the baseline.{more}",
        (FULL, height),
        draw,
        ("problem", "attempt: speed-up of its best sample", "best", "by way of attempts"),
        [
            (
                name,
                ", ".join(f"{one.attempt}: {fmt.ratio(one.speedup)}" for one in curve),
                fmt.ratio(curve[-1].best),
                ", ".join(str(one.attempt) for one in curve if one.led_to_best),
            )
            for name, curve in shown
        ],
        wide=True,
    )


def _risen(shown: Sequence[tuple[str, Sequence[Score]]]) -> int:
    found = 0
    for _, curve in shown:
        best = [one.best for one in curve if one.best is not None]
        found += bool(best) and best[-1] > best[0]
    return found
