"""The table of problems by attempts: a widget that draws only the lines that are seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from hkbench.monitor.rows import Layout
from hkbench.store.samples import ProblemState
from hkbench.store.state import RunState

_MARK = 2  # columns before each panel, for the cursor


class Grid(ScrollView, can_focus=True):
    """A line for each problem, in panels side by side where there is room; the header stays when it is scrolled."""

    DEFAULT_CSS = "Grid { height: 1fr; overflow-x: hidden; scrollbar-size: 1 1; scrollbar-gutter: stable; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "move(-1000000)", "Top", show=False),
        Binding("end,G", "move(1000000)", "End", show=False),
        Binding("left,h", "sideways(-1)", "Left", show=False),
        Binding("right,l", "sideways(1)", "Right", show=False),
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
        self._now = 0.0
        self._cursor = 0
        self._first: int | None = None  #: the first attempt to show; `None`: as the layout finds it
        self._layout: Layout | None = None

    def show(self, state: RunState | None, names: list[str], now: float, changed: Iterable[str] | None = None) -> None:
        """Take the rows `names` of `state`, in this order, at `now`.

        Only `changed` rows, and those whose clock goes on, are drawn anew where no row has moved.
        """
        at = self.cursor_name
        moved = changed is None or state is not self._state or names != self._names
        self._state, self._names, self._now = state, list(names), now
        if moved:
            before = self._cursor
            self._cursor = names.index(at) if at in names else min(self._cursor, max(0, len(names) - 1))
            if self._cursor != before:
                self.call_after_refresh(self.action_move, 0)  # into sight
        if self._lay_out() or moved or state is None:
            self.refresh()
            return
        wanted = set(changed or ())
        for index, name in enumerate(self._names):
            problem = state.problems[name]
            if name in wanted or problem.running or problem.advised is not None:
                self._redraw(index)

    @property
    def names(self) -> list[str]:
        """The problems in the order of the rows."""
        return self._names

    @property
    def cursor_name(self) -> str | None:
        """The problem that the cursor is on."""
        return self._names[self._cursor] if self._cursor < len(self._names) else None

    def put_cursor(self, name: str) -> None:
        """Put the cursor on a problem, if it has a row."""
        if name in self._names:
            self.action_move(self._names.index(name) - self._cursor)

    @property
    def _room(self) -> Size:
        """What is seen, without the scroll bar."""
        return self.scrollable_content_region.size

    def _lay_out(self) -> bool:
        """Lay out columns and size anew; return whether they changed."""
        layout = None
        if self._state is not None and self._room.width > _MARK:
            room = self._room
            layout = Layout.of(
                self._state, self._names, room.width - _MARK, first=self._first, rows=room.height - 1, mark=_MARK
            )
        rows = -(-len(self._names) // layout.panels) if layout is not None else 0
        size = Size(self._room.width, rows + 1)
        same = (layout, size) == (self._layout, self.virtual_size)
        self._layout, self.virtual_size = layout, size
        return not same

    def on_resize(self) -> None:
        self._lay_out()
        self.call_after_refresh(self.action_move, 0)

    @property
    def _rows(self) -> int:
        """Rows of a panel."""
        return max(1, self.virtual_size.height - 1)

    def render_line(self, y: int) -> Strip:
        """Return line `y` of what is seen; the first is the header."""
        base, layout = self.rich_style, self._layout
        if layout is None or self._state is None:
            return Strip.blank(self._room.width, base)
        row = y - 1 + self.scroll_offset.y
        strips = []
        for panel in range(layout.panels):
            if y == 0:
                segments = [Segment("  ", base), *(_segment(text, style, base) for text, style in layout.header())]
            else:
                segments = self._segments(panel * self._rows + row if row < self._rows else -1, layout, base)
            strips.append(Strip(segments).crop_extend(0, layout.panel + _MARK, base))
        return Strip.join(strips).crop_extend(0, self._room.width, base)

    def _segments(self, index: int, layout: Layout, base: Style) -> list[Segment]:
        """Return the row of one problem; nothing beyond the last."""
        if self._state is None or not 0 <= index < len(self._names):
            return []
        name, at_cursor = self._names[index], index == self._cursor
        problem = self._state.problems.get(name, ProblemState())
        (shown, style), *rest = layout.row(name, problem, self._now)
        turned = Style(reverse=at_cursor and self.has_focus)
        return [
            Segment("> " if at_cursor else "  ", base + Style(bold=True)),
            Segment(shown, base + Style.parse(style) + turned),
            *(_segment(text, style, base) for text, style in rest),
        ]

    def _redraw(self, index: int) -> None:
        """Redraw one row, where it is seen."""
        y = index % self._rows - self.scroll_offset.y + 1
        if 1 <= y < self._room.height:
            self.refresh(Region(0, y, self._room.width, 1))

    def action_move(self, by: int) -> None:
        """Move the cursor by `by` rows, as far as there are any."""
        if not self._names:
            return
        old, self._cursor = self._cursor, min(max(self._cursor + by, 0), len(self._names) - 1)
        row, seen, top = self._cursor % self._rows, self._room.height - 1, self.scroll_offset.y
        if row < top:
            self.scroll_to(y=row, animate=False)
        elif row >= top + seen:
            self.scroll_to(y=row - seen + 1, animate=False)
        self._redraw(old)
        self._redraw(self._cursor)

    def action_page(self, direction: int) -> None:
        self.action_move(direction * max(1, self._room.height - 2))

    def action_sideways(self, direction: int) -> None:
        """Go to the panel beside; with a single panel, move the attempts by one."""
        layout = self._layout
        if layout is None:
            return
        if layout.panels > 1:
            if 0 <= self._cursor + direction * self._rows < len(self._names):
                self.action_move(direction * self._rows)
            return
        shown = layout.attempts
        if (shown.start > 0) if direction < 0 else (shown.stop < len(layout.widths)):
            self._first = shown.start + direction
            self._lay_out()
            self.refresh()

    def action_open(self) -> None:
        if self.cursor_name is not None:
            self.post_message(self.Opened(self.cursor_name))

    def on_click(self, event: Click) -> None:
        """Put the cursor where a click is; a second click opens."""
        row = event.y - 1 + self.scroll_offset.y
        if event.y < 1 or row >= self._rows or self._layout is None:
            return
        index = event.x // (self._layout.panel + _MARK) * self._rows + row
        if index == self._cursor:
            self.action_open()
        elif index < len(self._names):
            self.action_move(index - self._cursor)

    def on_focus(self) -> None:
        self._redraw(self._cursor)

    def on_blur(self) -> None:
        self._redraw(self._cursor)


def _segment(text: str, style: str, base: Style) -> Segment:
    return Segment(text, base + Style.parse(style))
