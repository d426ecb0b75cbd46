"""The whole run on one screen."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar, TypeVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, Input, Static

from hkbench.headline import plural
from hkbench.monitor.cells import legend
from hkbench.monitor.choices import ChoiceScreen
from hkbench.monitor.devices import device_lines, devices_now
from hkbench.monitor.grid import Grid
from hkbench.monitor.head import head
from hkbench.monitor.problem import ProblemScreen
from hkbench.monitor.screens import RunScreen
from hkbench.monitor.selection import Order, Selection
from hkbench.records import FailureKind
from hkbench.store.sanitize import one_line
from hkbench.store.state import RunState

T = TypeVar("T")
_WAITING = 9  # lines of the place for the head where there is no run
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
        yield Static(id="legend")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.query_one(Grid).focus()
        self.follow(None)

    def follow(self, changed: set[str] | None) -> None:
        """Draw the head, and of the table what changed."""
        app, grid, top = self.monitor, self.query_one(Grid), self.query_one("#head", Static)
        top.set_class(app.state is None, "waiting")
        if app.state is None:
            top.styles.height = _WAITING
            top.update(Text(app.waiting()), layout=False)
            self.query_one("#shown", Static).update("", layout=False)
            grid.show(None, [], 0.0)
            return
        lines = self._head(app.state)
        top.styles.height = len(lines)
        top.update(Text("\n").join(lines), layout=False)
        self.query_one("#legend", Static).update(legend(app.state, self.app.size.width), layout=False)
        self._show_rows(changed)

    def _head(self, state: RunState) -> list[Text]:
        app, now, size = self.monitor, self.monitor.clock(), self.app.size
        watch = app.watch_now
        lines = head(state, watch.name, now, watch.facts, width=size.width, resume=watch.resume)
        devices = devices_now(state, now, app.gauges.readings)
        if devices and not state.over:
            told = device_lines(devices, app.gauges.note, max(1, size.height - len(lines) - _REST))
            lines = head(state, watch.name, now, watch.facts, width=size.width, devices=told, resume=watch.resume)
        lines[0].append(app.place, "dim")
        return lines[:_LOW_HEAD] if size.height < _LOW else lines

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
        self.query_one(Grid).show(state, names, self.monitor.clock(), changed)

    def action_sort(self) -> None:
        orders = list(Order)
        self.selection.order = orders[(orders.index(self.selection.order) + 1) % len(orders)]
        self._show_rows(None)

    def action_failure(self) -> None:
        """Choose a kind of failure, to show the problems with such failures alone."""
        state = self.monitor.state
        if state is None:
            return
        found = self.selection.kinds(state)
        lines = [f"{kind:<18} {plural(count, 'sample'):>11} of {plural(of, 'problem')}" for kind, count, of in found]
        values: list[FailureKind | None] = [None, *(kind for kind, _, _ in found)]

        def choose(kind: FailureKind | None) -> None:
            self.selection.kind = kind

        self._offer("Failures: show problems with", ["all problems", *lines], values, self.selection.kind, choose)

    def action_category(self) -> None:
        """Choose a category, to show its problems alone."""
        state = self.monitor.state
        if state is None:
            return
        found = self.selection.categories(state)
        lines = [f"{one_line(name, 40):<24} {plural(count, 'problem')}" for name, count in found]
        values: list[str | None] = [None, *(name for name, _ in found)]

        def choose(category: str | None) -> None:
            self.selection.category = category

        self._offer("Categories: show problems of", ["all problems", *lines], values, self.selection.category, choose)

    def _offer(self, title: str, lines: list[str], values: list[T], present: T, choose: Callable[[T], None]) -> None:
        """Offer a list of `values`, described by `lines`; `choose` is given the one that is chosen."""

        def chosen(index: int | None) -> None:
            if index is not None:
                choose(values[index])
                self._show_rows(None)

        at = values.index(present) if present in values else 0
        self.app.push_screen(ChoiceScreen(title, lines, at), chosen)

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
        """Filter the rows by the typed pattern; a pattern that is not whole yet leaves them as they are."""
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
        grid = self.query_one(Grid)
        screen = ProblemScreen(event.name, grid.names)
        self.app.push_screen(screen, lambda _: grid.put_cursor(screen.problem))
