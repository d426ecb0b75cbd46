"""One frame of the view on a run, for `rich`; fits any height of twelve lines and more."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from hkbench.monitor.cells import legend
from hkbench.monitor.head import head, line
from hkbench.monitor.rows import Layout, Parts
from hkbench.records import RunFacts
from hkbench.store.samples import ProblemState
from hkbench.store.state import RunState


def frame(
    state: RunState,
    name: str,
    now: float,
    *,
    facts: RunFacts | None = None,
    height: int | None = None,
    devices: Sequence[Text] = (),
    resume: str | None = None,
) -> Frame:
    """Return the view at `now`: head, what is going on, problems by attempts. `height` lines at most, if given.

    `devices` are lines on the devices and `resume` is the command that resumes the run, for the head.
    """
    return Frame(state, name, now, facts, height, tuple(devices), resume)


class Frame:
    """A renderable as wide as the terminal. Drawn here and not by rich's own table, which lays out every cell twice."""

    def __init__(
        self,
        state: RunState,
        name: str,
        now: float,
        facts: RunFacts | None,
        height: int | None,
        devices: tuple[Text, ...],
        resume: str | None,
    ) -> None:
        self._state, self._name, self._now, self._facts = state, name, now, facts
        self._height, self._devices, self._resume = height, devices, resume

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, state = options.max_width, self._state
        lines = head(state, self._name, self._now, self._facts, width=width, devices=self._devices, resume=self._resume)
        # Beside the head and the rows: the header of the table, the count of hidden rows, the legend, and two
        # lines for the cursor and the shell's prompt, so that the title stays on the screen at the end.
        rows = list(state.problems.items())
        shown = rows if self._height is None else _window(rows, max(0, self._height - len(lines) - 5))
        yield from lines
        layout = Layout.of(state, [name for name, _ in shown], width)
        yield from _drawn(layout.header(), width)
        for name, problem in shown:
            yield from _drawn(layout.row(name, problem, self._now), width)
        if len(shown) < len(rows):
            yield line((f"and {len(rows) - len(shown)} more problems", "dim"))
        yield legend(state, width)


def _window(rows: list[tuple[str, ProblemState]], size: int) -> list[tuple[str, ProblemState]]:
    """Return `size` rows in the order of the plan: those around the first problem that is not finished."""
    if len(rows) <= size:
        return rows
    busy = next((i for i, (_, problem) in enumerate(rows) if not problem.closed), len(rows) - 1)
    first = max(0, min(busy - size // 3, len(rows) - size))
    return rows[first : first + size]


def _drawn(parts: Parts, width: int) -> RenderResult:
    """Yield one line, cut at the edge."""
    segments = [Segment(text, _style(style)) for text, style in parts]
    yield from Segment.adjust_line_length(segments, width, pad=False)
    yield Segment.line()


_style = cache(Style.parse)
