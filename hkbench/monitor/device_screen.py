"""The devices of a run on a screen of their own."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, Static

from hkbench.monitor.devices import device_table, devices_now
from hkbench.monitor.pager import Pager
from hkbench.monitor.screens import RunScreen


class DevicesScreen(RunScreen):
    """Two lines for each device: what it measures, how it does."""

    DEFAULT_CSS = "DevicesScreen #title { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,backspace", "leave", "Back")]

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        yield Pager()
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.query_one(Pager).focus()
        self.call_after_refresh(self.follow, None)

    def follow(self, changed: set[str] | None) -> None:  # noqa: ARG002 - the clock goes on without changes too
        """Draw all of it: there are few."""
        app, title, pager = self.monitor, self.query_one("#title", Static), self.query_one(Pager)
        if app.state is None:
            title.update(Text(app.waiting()), layout=False)
            pager.show(Text(""))
            return
        where = f" on {app.state.host}" if app.state.host is not None else ""
        title.update(Text.assemble((f"devices of {app.watch_now.name}{where}", "bold"), app.place), layout=False)
        devices = devices_now(app.state, app.clock(), app.gauges.readings)
        pager.show(device_table(devices, app.gauges.note, over=app.state.over), keep_place=True)

    def action_leave(self) -> None:
        self.dismiss()
