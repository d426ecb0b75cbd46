"""What the figures of all pages are made with: a figure with its words and numbers, and its axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from hkbench.report.page.svg import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

HALF, FULL = 5.4, 11.6  #: inches of a figure that shares a line, and of one that has it alone
LABEL = 34  #: characters of a problem's name on an axis


@dataclass(frozen=True)
class Figure:
    """A figure with what it says in words and in numbers."""

    name: str
    title: str
    says: str  #: one sentence: the text in place of the picture
    note: str  #: what is shown, for everybody
    svg: Markup
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    wide: bool = False


def made_figure(
    name: str,
    title: str,
    says: str,
    note: str,
    size: tuple[float, float],
    draw: Callable[[Canvas], None],
    header: Sequence[str],
    rows: Iterable[tuple[str, ...]],
    *,
    wide: bool = False,
) -> Figure:
    svg = Markup(drawn(f"fig-{name}", title, says, *size, draw))  # noqa: S704 - matplotlib escapes its texts
    return Figure(name, title, says, note, svg, tuple(header), tuple(rows), wide)


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows, the first on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)


def whole_ticks(axes: Axes, numbers: Sequence[int]) -> None:
    """Set ticks at whole numbers: at each, up to a dozen."""
    if len(numbers) <= 12:
        axes.set_xticks(numbers)
    else:
        axes.locator_params(axis="x", integer=True)
    axes.set_xlim(numbers[0] - 0.5, numbers[-1] + 0.5)


def ratio_axis(axes: Axes, low: float, high: float) -> None:
    """Draw a logarithmic axis of speed-ups with ticks in plain numbers."""
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_xticks(*ratio_ticks(low, high))
    axes.set_xticks([], minor=True)


def ratio_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Return where such an axis has its ticks, and their labels."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    span = math.log10(high / low)
    steps: tuple[int, ...] = (1, 2, 5) if span < 2 else (1, 3) if span < 3.5 else (1,)
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    within = [tick for tick in ticks if low <= tick <= high]
    return within, [f"{tick:g}x" for tick in within]
