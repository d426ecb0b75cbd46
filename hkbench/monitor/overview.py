"""The whole run on one screen."""

from __future__ import annotations

import re
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, Input, Static

from hkbench.monitor.cells import LEGEND
from hkbench.monitor.devices import device_lines, devices_now
from hkbench.monitor.grid import Grid
from hkbench.monitor.head import full_head
from hkbench.monitor.problem import ProblemScreen
from hkbench.monitor.screens import RunScreen
from hkbench.monitor.selection import Order, Selection
from hkbench.monitor.state import RunState
from hkbench.store.plain import one_line

_HEAD = 9  # lines of `full_head` without devices
_LOW, _LOW_HEAD = 20, 4  # a terminal with fewer lines shows only so many of the head
_REST = 11  # lines besides the head: of the table at least eight


class OverviewScreen(RunScreen):
    """Head, table of problems by attempts, keys."""

    DEFAULT_CSS = """
    OverviewScreen #head { text-wrap: nowrap; text-overflow: ellipsis; }
    OverviewScreen #head.waiting { text-wrap: wrap; }
    OverviewScreen.-low #legend { display: none; }
    OverviewScreen #shown, OverviewScreen #legend {
        height: 1; text-wrap: nowrap; text-overflow: ellipsis; color: $text-muted;
    }
    OverviewScreen #filter { height: 1; display: none; border: none; padding: 0; }
    """
    VERTICAL_BREAKPOINTS = [(0, "-low"), (_LOW, "-high")]  # lines of the terminal
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("f", "failure", "Failures"),
        Binding("c", "category", "Category"),
        Binding("s", "sort", "Sort"),
        Binding("escape", "all", "All", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - textual's name
        super().__init__(id=id)
        self.selection = Selection()

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        yield Static(id="shown")
        yield Input(placeholder="a regular expression; Enter keeps it, Escape shows all", id="filter", compact=True)
        yield Grid()
        yield Static(Text(LEGEND), id="legend")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.query_one(Grid).focus()
        self.follow(None)

    def follow(self, changed: set[str] | None) -> None:
        """Draw the head, and of the table what changed."""
        app, grid, head = self.monitor, self.query_one(Grid), self.query_one("#head", Static)
        head.set_class(app.state is None, "waiting")
        if app.state is None:
            head.styles.height = _HEAD
            head.update(Text(app.waiting()), layout=False)
            self.query_one("#shown", Static).update("", layout=False)
            grid.show(None, [])
            return
        lines = self._head(app.state)
        head.styles.height = len(lines)
        head.update(Text("\n").join(lines), layout=False)
        if changed is None or changed:
            self._show_rows(changed)

    def _head(self, state: RunState) -> list[Text]:
        app, height = self.monitor, self.app.size.height
        devices = devices_now(state, app.clock(), app.gauges.readings)
        told = device_lines(devices, app.gauges.note, max(1, height - _HEAD - _REST)) if devices else []
        lines = full_head(state, app.watch_now.name, app.clock(), app.watch_now.facts, told)
        lines[0].append(app.place, "dim")
        return lines[:_LOW_HEAD] if height < _LOW else lines

    def on_resize(self) -> None:
        self.follow(set())

    def _show_rows(self, changed: set[str] | None) -> None:
        state = self.monitor.state
        if state is None:
            return
        names = self.selection.names(state)
        self.query_one("#shown", Static).update(
            Text(self.selection.describe(len(names), len(state.problems))), layout=False
        )
        self.query_one(Grid).show(state, names, changed)

    def action_sort(self) -> None:
        orders = list(Order)
        self.selection.order = orders[(orders.index(self.selection.order) + 1) % len(orders)]
        self._show_rows(None)

    def action_failure(self) -> None:
        """Failures of the next kind that the run has, the most frequent first; after the last one all problems."""
        if self.monitor.state is not None:
            self.selection.next_kind(self.monitor.state)
            self._show_rows(None)

    def action_category(self) -> None:
        """Problems of the next category that the run has; after the last one all problems."""
        if self.monitor.state is not None:
            self.selection.next_category(self.monitor.state)
            self._show_rows(None)

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        self.query_one("#shown", Static).display = False
        field.display = True
        field.value = self.selection.pattern
        field.focus()

    def action_all(self) -> None:
        """Show every problem; where nothing is left out, go back to the table of runs."""
        if not self.selection.narrow and not self.query_one("#filter", Input).display and self.monitor.is_nested:
            self.dismiss()
            return
        self.selection.clear()
        self._close_filter()

    @on(Input.Changed, "#filter")
    def _typed(self, event: Input.Changed) -> None:
        """A pattern that is not whole yet leaves the rows as they are."""
        try:
            self.selection.search(event.value)
        except re.error:
            return
        self._show_rows(None)

    @on(Input.Submitted, "#filter")
    def _entered(self, event: Input.Submitted) -> None:
        try:
            self.selection.search(event.value)
        except re.error as error:
            self.notify(f"not a regular expression: {one_line(str(error), 100)}", severity="error", markup=False)
            return
        self._close_filter()

    def _close_filter(self) -> None:
        self.query_one("#filter", Input).display = False
        self.query_one("#shown", Static).display = True
        self.query_one(Grid).focus()
        self._show_rows(None)

    @on(Grid.Opened)
    def _opened(self, event: Grid.Opened) -> None:
        self.app.push_screen(ProblemScreen(event.name))
