"""The table of problems by attempts: a widget that draws only the lines that are seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from hkbench.monitor.cells import attempt_cells, attempt_widths, name_style
from hkbench.monitor.state import ProblemState, RunState
from hkbench.store.figures import speedup
from hkbench.store.plain import one_line

_MARK = 2  # columns before a name, for the cursor
_BEST = 9  # columns of the best speed-up, with a space on either side
_NAME = 34  # columns of a name at most


class Grid(ScrollView, can_focus=True):
    """A line for each problem; names and best speed-ups stay where they are when the attempts are scrolled."""

    DEFAULT_CSS = "Grid { height: 1fr; scrollbar-size: 1 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "move(-1000000)", "Top", show=False),
        Binding("end,G", "move(1000000)", "End", show=False),
        Binding("left,h", "sideways(-1)", "Earlier attempts", show=False),
        Binding("right,l", "sideways(1)", "Later attempts", show=False),
        Binding("enter", "open", "Open"),
    ]

    class Opened(Message):
        """A problem was chosen."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self) -> None:
        super().__init__()
        self._state: RunState | None = None
        self._names: list[str] = []
        self._cursor = 0
        self._widths: list[int] = []  #: of the attempts' columns, the space behind included
        self._left = _MARK + _BEST  #: columns that are not scrolled

    def show(self, state: RunState | None, names: list[str], changed: Iterable[str] | None = None) -> None:
        """Take the rows `names` of `state`, in this order; only `changed` is drawn anew where no row has moved."""
        at = self.cursor_name
        moved = changed is None or state is not self._state or names != self._names
        self._state, self._names = state, list(names)
        if moved:
            before = self._cursor
            self._cursor = names.index(at) if at in names else min(self._cursor, max(0, len(names) - 1))
            if self._cursor != before:
                self.call_after_refresh(self.action_move, 0)  # into sight
        moved = self._measure() or moved
        if moved:
            self.refresh()
            return
        wanted = set(changed or ())
        top = self.scroll_offset.y
        for y, name in enumerate(self._names[top : top + self._room.height - 1], start=1):
            if name in wanted:
                self.refresh(Region(0, y, self._room.width, 1))

    @property
    def _room(self) -> Size:
        """What is seen, without the scroll bars."""
        return self.scrollable_content_region.size

    @property
    def cursor_name(self) -> str | None:
        """The problem that the cursor is on."""
        return self._names[self._cursor] if self._cursor < len(self._names) else None

    def _measure(self) -> bool:
        """Columns and size anew; whether they changed."""
        widths: list[int] = []
        if self._state is not None:
            config = self._state.config
            drawn = attempt_widths(self._state.problems.values(), config.attempts, config.samples)
            widths = [width + 1 for width in drawn]
        longest = max((len(name) for name in self._state.problems), default=0) if self._state is not None else 0
        left = _MARK + min(longest, _NAME, max(12, self._room.width // 3)) + _BEST
        size = Size(left + sum(widths), len(self._names) + 1)
        same = (widths, left, size) == (self._widths, self._left, self.virtual_size)
        self._widths, self._left, self.virtual_size = widths, left, size
        return not same

    def on_resize(self) -> None:
        self._measure()
        self.call_after_refresh(self.action_move, 0)

    def render_line(self, y: int) -> Strip:
        """Line `y` of what is seen; the first is the header, which stays."""
        row = y - 1 + self.scroll_offset.y
        base = self.rich_style
        if y == 0:
            fixed, scrolled = self._header(base)
        elif self._state is not None and row < len(self._names):
            name = self._names[row]
            problem = self._state.problems.get(name, ProblemState())
            fixed = self._fixed(name, problem, base, at_cursor=row == self._cursor)
            scrolled = self._cells(problem, base)
        else:
            return Strip.blank(self._room.width, base)
        start = self.scroll_offset.x
        room = max(0, self._room.width - self._left)
        line = Strip.join([Strip(fixed), Strip(scrolled).crop_extend(start, start + room, base)])
        return line.crop_extend(0, self._room.width, base)

    def _header(self, base: Style) -> tuple[list[Segment], list[Segment]]:
        bold = base + Style(bold=True)
        name = " " * _MARK + "problem".ljust(self._left - _MARK - _BEST)
        tries = "".join(f"try {k}".ljust(width) for k, width in enumerate(self._widths, start=1))
        return [Segment(name + "best".rjust(_BEST - 1) + " ", bold)], [Segment(tries, bold)]

    def _fixed(self, name: str, problem: ProblemState, base: Style, *, at_cursor: bool) -> list[Segment]:
        turned = Style(reverse=at_cursor and self.has_focus)
        shown = set_cell_size(one_line(name, 200), self._left - _MARK - _BEST)
        best = speedup(problem.best) if problem.best is not None else ""
        colour = Style.parse("green" if problem.solved else "yellow")
        return [
            Segment("> " if at_cursor else "  ", base + Style(bold=True)),
            Segment(shown, base + Style.parse(name_style(problem)) + turned),
            Segment(best.rjust(_BEST - 1) + " ", base + colour),
        ]

    def _cells(self, problem: ProblemState, base: Style) -> list[Segment]:
        parts: list[Segment] = []
        for attempt, width in enumerate(self._widths, start=1):
            samples = self._state.config.samples if self._state is not None else 0
            most = max(samples, problem.tally.widest.get(attempt, 0))
            for letters, style in attempt_cells(problem, attempt, most):
                parts.append(Segment(letters, base + Style.parse(style)))
            parts.append(Segment(" " * (width - most), base))
        return parts

    def _redraw_row(self, row: int) -> None:
        self.refresh(Region(0, row - self.scroll_offset.y + 1, self._room.width, 1))

    def action_move(self, by: int) -> None:
        """The cursor by `by` rows, as far as there are any."""
        if not self._names:
            return
        old, self._cursor = self._cursor, min(max(self._cursor + by, 0), len(self._names) - 1)
        rows, top = self._room.height - 1, self.scroll_offset.y
        if self._cursor < top:
            self.scroll_to(y=self._cursor, animate=False)
        elif self._cursor >= top + rows:
            self.scroll_to(y=self._cursor - rows + 1, animate=False)
        self._redraw_row(old)
        self._redraw_row(self._cursor)

    def action_page(self, direction: int) -> None:
        self.action_move(direction * max(1, self._room.height - 2))

    def action_sideways(self, direction: int) -> None:
        """The attempts by one column."""
        edges = [sum(self._widths[:k]) for k in range(len(self._widths))]
        x = self.scroll_offset.x
        further = [edge for edge in edges if (edge > x if direction > 0 else edge < x)]
        if further:
            self.scroll_to(x=further[0] if direction > 0 else further[-1], animate=False)

    def action_open(self) -> None:
        if self.cursor_name is not None:
            self.post_message(self.Opened(self.cursor_name))

    def on_click(self, event: Click) -> None:
        """A click puts the cursor there, a second one opens."""
        row = event.y - 1 + self.scroll_offset.y
        if event.y < 1 or row >= len(self._names):
            return
        if row == self._cursor:
            self.action_open()
        else:
            self.action_move(row - self._cursor)

    def on_focus(self) -> None:
        self._redraw_row(self._cursor)

    def on_blur(self) -> None:
        self._redraw_row(self._cursor)
