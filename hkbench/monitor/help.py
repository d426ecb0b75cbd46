"""The list of keys and signs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, Static

from hkbench.monitor.cells import SIGNS
from hkbench.monitor.pager import Pager
from hkbench.records import Outcome

_KEYS = {
    "everywhere": (
        ("q, Ctrl-C", "quit; the run continues"),
        ("?", "this list"),
        ("t", "light or dark colours"),
        ("d", "devices: what each measures, load, memory, clock"),
        ("r", "next run, where several are watched"),
        ("Tab", "move the focus, for arrows and Page keys"),
    ),
    "table of runs": (("Enter", "open the run at the cursor"),),
    "overview": (
        ("Enter", "open the problem at the cursor (or click it twice)"),
        ("g, G", "first and last problem"),
        ("s", "sort by plan, best speed-up, name, state, category"),
        ("/", "filter names by a regular expression; Escape: all"),
        ("f", "list failure kinds with counts; Enter filters"),
        ("c", "list categories; Enter filters"),
        ("left, right", "other column of problems, or other attempts"),
    ),
    "problem": (
        ("up, down", "another sample"),
        ("n, p", "next and previous problem"),
        ("left, right, 1 to 8", "another view of the sample"),
        ("space, b, g, G", "page through the view; its top, its end"),
        ("o", "open the file in $EDITOR"),
        ("y", "copy the path of the file"),
        ("m", "start diffs from this sample; again: undo"),
        ("Escape", "back"),
    ),
}
_MEANINGS = {
    Outcome.FASTER: "the 95 % interval of its speed-up is above 1",
    Outcome.ON_PAR: "the interval contains 1",
    Outcome.SLOWER: "the interval is below 1",
    Outcome.UNSETTLED: "right, and timed beside other work on the processors",
    Outcome.WRONG: "failed to build or run, or gave wrong results",
    Outcome.REFUSED: "right results that do not count",
    Outcome.EMULATED: "right on an emulated GPU, without a time",
    Outcome.COMPILED: "built only, not run",
}


class HelpScreen(Screen[None]):
    """The list of keys and signs; any of its keys goes back."""

    DEFAULT_CSS = "HelpScreen #title { height: 1; text-style: bold; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,enter", "leave", "Back")]

    def compose(self) -> ComposeResult:
        yield Static(Text("keys and signs"), id="title")
        yield Pager()
        yield Footer(compact=True)

    def on_mount(self) -> None:
        pager = self.query_one(Pager)
        pager.focus()
        self.call_after_refresh(pager.show, _help())

    def action_leave(self) -> None:
        self.dismiss()


def _help() -> RenderableType:
    parts: list[RenderableType] = []
    for where, keys in _KEYS.items():
        parts += [Text(where, style="bold"), _table((Text(key), what) for key, what in keys)]
    classes = ((Text(outcome.sign, outcome.style), f"{outcome.label}: {what}") for outcome, what in _MEANINGS.items())
    phases = ((Text(sign, style), word) for sign, style, word in SIGNS)
    return Group(*parts, Text("signs of the samples", style="bold"), _table(classes), _table(phases))


def _table(rows: Iterable[tuple[Text, str]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(width=20)
    table.add_column()
    for key, what in rows:
        table.add_row(key, Text(what))
    return table
