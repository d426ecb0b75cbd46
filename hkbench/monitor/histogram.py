"""Timed runs as a small histogram."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from hkbench.store.figures import kernel_time

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_ROWS = 4
_SHOWN = 0.95  # quantile at which the axis ends: one straggler must not make a single bar of all the others


def bins(samples: Sequence[float], most: int) -> tuple[list[int], float, float, int]:
    """Return counts of equal bins, the ends of the axis, and how many samples lie beyond it.

    The number of bins is at most `most` and at most the square root of the number of samples, doubled. `samples` are
    finite; of none there is one empty bin.
    """
    ordered = sorted(samples)
    if not ordered:
        return [0], 0.0, 0.0, 0
    low, high = ordered[0], ordered[math.ceil(_SHOWN * len(ordered)) - 1]
    inside = [x for x in ordered if x <= high]
    number = max(1, min(most, 2 * math.ceil(math.sqrt(len(inside)))))
    counts = [0] * number
    for x in inside:
        place = int((x - low) / (high - low) * number) if high > low else 0
        counts[min(place, number - 1)] += 1
    return counts, low, high, len(ordered) - len(inside)


def histogram(samples: Sequence[float], width: int, style: str) -> RenderableType:
    """Draw the seconds as bars of four lines, at most `width` columns, with the ends of the axis below."""
    finite = [x for x in samples if math.isfinite(x)]
    counts, low, high, beyond = bins(finite, width)
    wide = max(1, min(4, width // len(counts)))
    tallest = max(1, *counts)
    rows = []
    for row in reversed(range(_ROWS)):
        line = ""
        for number in counts:
            eighths = math.ceil(8 * _ROWS * number / tallest) - 8 * row
            line += _EIGHTHS[min(8, max(0, eighths))] * wide
        rows.append(Text("  " + line, style=style))
    ends = kernel_time(low), kernel_time(high)
    axis = "  " + ends[0] + ends[1].rjust(max(len(ends[1]) + 2, wide * len(counts) - len(ends[0])))
    more = f"  ({beyond} longer)" if beyond else ""
    return Group(*rows, Text(axis + more, style="dim"))
