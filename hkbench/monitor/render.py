"""One frame of the view on a run, for `rich`; fits any height of twelve lines and more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from hkbench.monitor.cells import LEGEND, attempt_cells, attempt_widths, name_style
from hkbench.monitor.head import line, plain_head
from hkbench.monitor.state import ProblemState, RunState
from hkbench.records import RunFacts
from hkbench.store.figures import speedup
from hkbench.store.plain import one_line

_GAP = 2  # columns before an attempt
_BEST = 10  # columns of the best speed-up, with those before it
_NAME, _SHORT = 60, 24  # columns of a name: at most, and where there are many attempts


def frame(
    state: RunState,
    name: str,
    now: float,
    *,
    facts: RunFacts | None = None,
    height: int | None = None,
    devices: Sequence[Text] = (),
) -> RenderableType:
    """The view at `now`: head, what is going on, problems by attempts. `height` lines at most, if given.

    `devices` are lines on the devices, for the head.
    """
    head = plain_head(state, name, now, facts, devices)
    rows = list(state.problems.items())
    # Beside the head and the rows: the header of the table, the count of hidden rows, the legend, and two
    # lines for the cursor and the shell's prompt, so that the title stays on the screen at the end.
    shown = rows if height is None else _window(rows, max(0, height - len(head) - 5))
    hidden = len(rows) - len(shown)
    more = [line((f"and {hidden} more problems", "dim"))] if hidden else []
    return Group(*head, _Table(state, shown), *more, line((LEGEND, "dim")))


def _window(rows: list[tuple[str, ProblemState]], size: int) -> list[tuple[str, ProblemState]]:
    """`size` rows in the order of the plan: those around the first problem that is not finished."""
    if len(rows) <= size:
        return rows
    busy = next((i for i, (_, problem) in enumerate(rows) if not problem.closed), len(rows) - 1)
    first = max(0, min(busy - size // 3, len(rows) - size))
    return rows[first : first + size]


class _Table:
    """Rows as wide as the terminal. Drawn here and not by rich's own table, which lays out every cell twice."""

    def __init__(self, state: RunState, rows: list[tuple[str, ProblemState]]) -> None:
        self._state, self._rows = state, rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        config = self._state.config
        widths = attempt_widths((problem for _, problem in self._rows), config.attempts, config.samples)
        longest = max([len("problem"), *(min(_NAME, cell_len(name)) for name, _ in self._rows)])
        first, last = self._window(widths, options.max_width - min(longest, _SHORT) - _BEST)
        shown = range(first, last)
        room = options.max_width - _BEST - sum(widths[k] + _GAP for k in shown)
        name_width = max(min(longest, room), min(longest, _SHORT))
        titles = "".join(" " * _GAP + f"try {k + 1}".ljust(widths[k]) for k in shown)
        yield Segment("problem".ljust(name_width) + titles + "best".rjust(_BEST), _style("bold"))
        yield Segment.line()
        for name, problem in self._rows:
            yield from self._row(name, problem, name_width, widths, shown)
            yield Segment.line()

    def _window(self, widths: list[int], room: int) -> tuple[int, int]:
        """The attempts that fit: the first ones, or the last ones up to the latest that was begun."""
        last = len(widths)
        if sum(width + _GAP for width in widths) > room:
            last = max([1, *(attempt for _, problem in self._rows for attempt in problem.tally.widest)])
        first = last
        while first > 0 and sum(width + _GAP for width in widths[first - 1 : last]) <= room:
            first -= 1
        first = min(first, last - 1)
        while last < len(widths) and sum(width + _GAP for width in widths[first : last + 1]) <= room:
            last += 1
        return first, last

    def _row(
        self, name: str, problem: ProblemState, name_width: int, widths: list[int], shown: range
    ) -> Iterator[Segment]:
        plain = one_line(name, 200)
        short = set_cell_size(plain, name_width) if cell_len(plain) <= name_width else _cut(plain, name_width)
        yield Segment(short, _style(name_style(problem)))
        for k in shown:
            yield Segment(" " * _GAP)
            drawn = max(self._state.config.samples, problem.tally.widest.get(k + 1, 0))
            for letters, style in attempt_cells(problem, k + 1, drawn):
                yield Segment(letters, _style(style))
            yield Segment(" " * (widths[k] - drawn))
        best = speedup(problem.best) if problem.best is not None else ""
        yield Segment(best.rjust(_BEST), _style("green" if problem.solved else "yellow"))


def _cut(text: str, width: int) -> str:
    return set_cell_size(text, width - 1) + "…"


_style = cache(Style.parse)
