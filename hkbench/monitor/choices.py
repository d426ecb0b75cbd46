"""A list to choose from, over whatever is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option


class ChoiceScreen(ModalScreen[int | None]):
    """End with the index of the chosen line, or with `None` where none was chosen."""

    DEFAULT_CSS = """
    ChoiceScreen { align: center middle; }
    ChoiceScreen #box { width: 60; max-width: 100%; height: auto; max-height: 100%; }
    ChoiceScreen #box { border: round $accent; padding: 0 1; background: $background; }
    ChoiceScreen Static { width: 100%; height: 1; text-style: bold; }
    ChoiceScreen OptionList, ChoiceScreen OptionList:focus {
        width: 100%; height: auto; border: none; padding: 0; background: $background;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Back"),
        Binding("j", "move(1)", "Down", show=False),
        Binding("k", "move(-1)", "Up", show=False),
    ]

    def __init__(self, title: str, lines: Sequence[str], chosen: int) -> None:
        super().__init__()
        self._title, self._lines, self._chosen = title, lines, chosen

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(Text(self._title))
            yield OptionList(*(Option(Text(line)) for line in self._lines))

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.highlighted = self._chosen
        options.focus()

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)

    def action_move(self, by: int) -> None:
        options = self.query_one(OptionList)
        if by > 0:
            options.action_cursor_down()
        else:
            options.action_cursor_up()

    def action_leave(self) -> None:
        self.dismiss(None)
