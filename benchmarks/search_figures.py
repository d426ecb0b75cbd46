"""What runs of searchers come to: figures with paired intervals, as tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from hkbench.records import Interval
from hkbench.stats import bootstrap_interval

AREA = 100  #: evaluations that the area under the curve goes over
NEAR = 1.05


@dataclass(frozen=True)
class Run:
    """One run of a searcher: log(best so far / optimum) after each evaluation, and that of the start."""

    searcher: str
    space: str
    seed: int
    start: float
    curve: list[float] = field(repr=False)

    def after(self, evaluations: int) -> float:
        """Return log(best / optimum); a searcher that ended before keeps what it had."""
        return self.curve[min(evaluations, len(self.curve)) - 1]

    @property
    def area(self) -> float:
        """Return the mean over the first evaluations of log(start / best) / log(start / optimum)."""
        return 1.0 - sum(self.after(number) for number in range(1, AREA + 1)) / AREA / self.start

    def near(self, evaluations: int) -> float:
        return float(self.after(evaluations) <= math.log(NEAR))


@dataclass(frozen=True)
class Figure:
    """One column: its title, the figure of a run, how the mean is shown."""

    title: str
    of: Callable[[Run], float]
    shown: Callable[[float], float]
    less_is_better: bool


FIGURES = (
    *(Figure(f"t/opt after {n}", lambda run, n=n: run.after(n), math.exp, True) for n in (20, 50, 100, 200)),  # type: ignore[misc]
    Figure("area, first 100", lambda run: run.area, float, False),
    Figure("within 5 % after 200", lambda run: run.near(200), float, False),
)
COMPARED = (FIGURES[2], FIGURES[4])


def table(runs: Sequence[Run], against: str) -> str:
    """Return a row a searcher, the means with 95 % intervals, and the paired differences from `against`."""
    names = list(dict.fromkeys(run.searcher for run in runs))
    compared = [f"{against} against it: {figure.title}" for figure in COMPARED]
    lines = [f"| searcher | runs | {' | '.join([f.title for f in FIGURES] + compared)} |"]
    lines.append("| --- " * (2 + len(FIGURES) + len(compared)) + "|")
    for name in names:
        own = [run for run in runs if run.searcher == name]
        cells = [name, str(len(own)), *(interval(own, figure) for figure in FIGURES)]
        cells += ["" if name == against else difference(runs, against, name, figure) for figure in COMPARED]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def interval(runs: Sequence[Run], figure: Figure) -> str:
    found = bootstrap_interval([figure.of(run) for run in runs], np.mean)
    return f"{figure.shown(found.value):.3f} [{figure.shown(found.low):.3f}, {figure.shown(found.high):.3f}]"


def difference(runs: Sequence[Run], one: str, other: str, figure: Figure) -> str:
    """Return what `one` is better by, run for run on the same space and start: times as ratios, else as differences."""
    ours = {(run.space, run.seed): figure.of(run) for run in runs if run.searcher == one}
    pairs = [
        (ours[run.space, run.seed], figure.of(run))
        for run in runs
        if run.searcher == other and (run.space, run.seed) in ours
    ]
    if not pairs:
        return "no runs in common"
    found = bootstrap_interval([mine - theirs for mine, theirs in pairs], np.mean)
    if found.low <= 0.0 <= found.high:
        return "no difference"
    better = (found.value < 0.0) == figure.less_is_better
    return f"{'better' if better else 'worse'}, {words(found, figure)}"


def words(found: Interval, figure: Figure) -> str:
    if figure.shown is math.exp:
        return f"x{math.exp(found.value):.3f} [{math.exp(found.low):.3f}, {math.exp(found.high):.3f}]"
    return f"{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
