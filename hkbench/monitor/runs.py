"""Several runs in one table."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from hkbench.monitor.cells import CELLS
from hkbench.monitor.head import condition
from hkbench.monitor.screens import RunScreen
from hkbench.monitor.state import Phase, RunState
from hkbench.monitor.words import duration
from hkbench.records import Status
from hkbench.store.plain import one_line

#: Title and width of the columns behind the name.
_COLUMNS = (
    ("state", 8),
    ("done", 5),
    ("solved", 7),
    ("fast", 4),
    ("slow", 4),
    ("failed", 6),
    ("calls", 5),
    ("time", 16),
)
_LEAST = 12  # columns of a name


class RunsScreen(RunScreen):
    """A line for each run folder."""

    DEFAULT_CSS = """
    RunsScreen #title { height: 1; text-style: bold; text-wrap: nowrap; }
    RunsScreen #runs { height: 1fr; border: none; padding: 0; scrollbar-size: 1 1; background: $background; }
    RunsScreen #runs > .option-list--option-highlighted { background: $surface-lighten-2; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "open", "Open")]

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        yield OptionList(id="runs")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        runs = self.query_one(OptionList)
        runs.add_options([Option("") for _ in self.monitor.watches])
        runs.highlighted = 0
        runs.focus()
        self.follow(None)

    def on_resize(self) -> None:
        self.follow(None)

    def follow(self, changed: set[str] | None) -> None:  # noqa: ARG002 - of one run
        """Draw every line anew."""
        app, runs = self.monitor, self.query_one(OptionList)
        width = max(20, (runs.scrollable_content_region.width or self.app.size.width) - 2)  # beside an option's padding
        self.query_one("#title", Static).update(Text(f" {_title(width)}"), layout=False)
        for index, watch in enumerate(app.watches):
            trouble = app.troubles.get(index)
            state = watch.state if trouble is None else None
            line = run_line(str(watch.paths.root), state, trouble, app.clock(), width)
            runs.replace_option_prompt_at_index(index, line)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.monitor.open_run(event.option_index)

    def action_open(self) -> None:
        self.query_one(OptionList).action_select()


def _name_width(width: int) -> int:
    return max(_LEAST, width - sum(wide + 1 for _, wide in _COLUMNS))


def _title(width: int) -> str:
    return " ".join(["run".ljust(_name_width(width)), *(f"{name:>{wide}}" for name, wide in _COLUMNS)])


def run_line(folder: str, state: RunState | None, trouble: str | None, now: float, width: int) -> Text:
    """One run in `width` columns; `trouble` is why there is nothing to say of it."""
    name = _ending(one_line(folder, 400), _name_width(width))
    if state is None:
        why = (trouble or "reading").removeprefix(folder).strip()
        return Text(set_cell_size(f"{name}  {one_line(why, 300)}", width), "dim")
    line = Text(name, "bold")
    word, style = condition(state)
    failed = state.status_count(Status.INCORRECT) + state.status_count(Status.REFUSED)
    left = state.seconds_left(now)
    time = duration(state.elapsed(now)) if left is None else f"{duration(left)} left"
    values = (
        (word.partition(":")[0], style),
        (f"{100 * state.progress():.0f} %", ""),
        (f"{state.solved if state.config.compiled_for is None else '-'}/{len(state.problems)}", "green"),
        (str(state.status_count(Status.FAST)), CELLS[Status.FAST][1]),
        (str(state.status_count(Status.SLOW)), CELLS[Status.SLOW][1]),
        (str(failed), CELLS[Status.INCORRECT][1]),
        (str(len(state.in_phase(Phase.ASKED))), ""),
        (time, ""),
    )
    for (value, style_of), (_, wide) in zip(values, _COLUMNS, strict=True):
        line.append(f" {value:>{wide}}", style_of)
    return line


def _ending(text: str, width: int) -> str:
    """The end of a path tells runs apart."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    while cell_len(text) > width - 1:
        text = text[1:]
    return set_cell_size("…" + text, width)
