"""The list of keys and letters."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from hkbench.monitor.pager import Pager

_KEYS = {
    "everywhere": (
        ("q, Ctrl-C", "end; the run goes on"),
        ("?", "this list"),
        ("t", "light or dark colours"),
        ("d", "the devices: what each measures, how it does"),
        ("r", "the next of the run folders that were named"),
        ("Tab", "to the other part of the screen, for arrows and Page keys"),
    ),
    "table of runs": (("Enter", "open the run at the cursor"),),
    "overview": (
        ("Enter", "open the problem at the cursor (or click it twice)"),
        ("s", "order: plan, best speed-up, name, state, category"),
        ("/", "only names that match a regular expression; Escape: all"),
        ("f", "only problems with failures of one kind, kind by kind"),
        ("c", "only problems of one category, or of one template"),
        ("left, right", "earlier and later attempts, where they do not fit"),
    ),
    "problem": (
        ("up, down", "another sample"),
        ("left, right, 1 to 8", "another view of it"),
        ("space, b", "the view by a page"),
        ("m", "diffs begin with this sample; again: with the best before"),
        ("Escape", "back"),
    ),
}
_LETTERS = (
    ("F", "fast: correct, speed-up of at least 1"),
    ("s", "slow: correct"),
    ("x", "incorrect"),
    ("r", "refused: right answers that do not count"),
    ("c", "compiled, never run"),
    ("?", "the model was asked"),
    ("-", "it has answered"),
    ("b", "read, built or loaded"),
    ("m", "on the device: run, compared or timed"),
    ("!", "lost: the service or the machine failed; a resume tries again"),
    (".", "not begun"),
)


class HelpScreen(ModalScreen[None]):
    """Over whatever is shown; any of its keys goes back."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen Pager { width: 78; max-width: 100%; height: 100%; max-height: 36; border: round $accent; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,enter", "dismiss", "Back")]

    def compose(self) -> ComposeResult:
        yield Pager()

    def on_mount(self) -> None:
        self.query_one(Pager).show(_help())


def _help() -> RenderableType:
    parts: list[RenderableType] = []
    for where, keys in (*_KEYS.items(), ("letters of the table", _LETTERS)):
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(width=20)
        table.add_column()
        for key, what in keys:
            table.add_row(Text(key), Text(what))
        parts += [Text(where, style="bold"), table]
    return Group(*parts)
