"""One frame of the view on a run, for `rich`; fits any height of twelve lines and more."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hkbench.monitor.cells import LEGEND, cell, name_style
from hkbench.monitor.head import line, plain_head
from hkbench.monitor.state import ProblemState, RunState
from hkbench.monitor.words import ratio
from hkbench.records import RunFacts
from hkbench.store.plain import one_line


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
    return Group(*head, _table(state, shown), *more, line((LEGEND, "dim")))


def _window(rows: list[tuple[str, ProblemState]], size: int) -> list[tuple[str, ProblemState]]:
    """`size` rows in the order of the plan: those around the first problem that is not finished."""
    if len(rows) <= size:
        return rows
    busy = next((i for i, (_, problem) in enumerate(rows) if not problem.closed), len(rows) - 1)
    first = max(0, min(busy - size // 3, len(rows) - size))
    return rows[first : first + size]


def _table(state: RunState, rows: list[tuple[str, ProblemState]]) -> Table:
    attempts = max((attempt for _, problem in rows for attempt, _ in problem.samples), default=state.config.attempts)
    attempts = max(attempts, state.config.attempts)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("problem", no_wrap=True, overflow="ellipsis")
    for attempt in range(1, attempts + 1):
        table.add_column(f"try {attempt}", no_wrap=True)
    table.add_column("best", justify="right", no_wrap=True)
    for name, problem in rows:
        best = Text(
            ratio(problem.best) if problem.best is not None else "", style="green" if problem.solved else "yellow"
        )
        cells = [_cells(problem, attempt, state.config.samples) for attempt in range(1, attempts + 1)]
        table.add_row(Text(one_line(name, 60), style=name_style(problem)), *cells, best)
    return table


def _cells(problem: ProblemState, attempt: int, samples: int) -> Text:
    most = max((sample for a, sample in problem.samples if a == attempt), default=samples)
    text = Text()
    for sample in range(1, max(most, samples) + 1):
        text.append(*cell(problem.samples.get((attempt, sample))))
    return text
