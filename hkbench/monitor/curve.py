"""The best speed-up so far over the attempts of a problem, in one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.text import Text

from hkbench.records import best_of, speedup_of
from hkbench.store.figures import speedup
from hkbench.store.samples import ProblemState, SampleState

_EIGHTHS = "▁▂▃▄▅▆▇█"
_FAILED = ("×", "red")
_LABEL = "best so far "
_LEAST = 3  #: attempts: fewer are seen at a glance in the list of samples


@dataclass(frozen=True)
class Point:
    """An attempt with a verdict on a sample's correctness."""

    best: float | None  #: speed-up so far; `None`: nothing was correct
    failed: bool  #: none of its own samples is correct


def points(problem: ProblemState) -> list[Point]:
    """Return the attempts that reached a verdict, in order."""
    judged: dict[int, list[SampleState]] = {}
    for (attempt, _), sample in sorted(problem.samples.items()):
        if sample.judged:
            judged.setdefault(attempt, []).append(sample)
    found: list[Point] = []
    best: SampleState | None = None
    for samples in judged.values():
        best = best_of([*([best] if best is not None else []), *samples])
        found.append(Point(speedup_of(best), not any(one.correct for one in samples)))
    return found


def curve_line(problem: ProblemState, width: int) -> Text | None:
    """Return `best so far ▁▁×▃▃█ 1.00x to 2.31x`, a sign an attempt; `None` where there is no curve to draw.

    The height is logarithmic. A cross is an attempt that failed. Of more attempts than there is room for, neighbours
    share a sign.
    """
    found = points(problem)
    known = [point.best for point in found if point.best]
    if len(found) < _LEAST or not known:
        return None
    ends = speedup(known[0]) if known[0] == known[-1] else f"{speedup(known[0])} to {speedup(known[-1])}"
    room = max(1, width - len(_LABEL) - len(ends) - 1)
    line = Text(_LABEL, "dim", no_wrap=True, overflow="ellipsis")
    shown = _fitted(found, room)
    heights = [math.log(point.best) for point in shown if point.best]
    low, span = min(heights), (max(heights) - min(heights)) or 1.0
    for point in shown:
        if point.failed or not point.best:
            line.append(*_FAILED)
        else:
            share = (math.log(point.best) - low) / span
            line.append(_EIGHTHS[round(share * (len(_EIGHTHS) - 1))], "green")
    return line.append(f" {ends}")


def _fitted(found: Sequence[Point], room: int) -> list[Point]:
    """Return at most `room` points: of neighbours that share one the last best, failed where all of them did."""
    if len(found) <= room:
        return list(found)
    edges = [round(place * len(found) / room) for place in range(room + 1)]
    groups = [found[begin:end] for begin, end in pairwise(edges)]
    return [Point(group[-1].best, all(one.failed for one in group)) for group in groups]
