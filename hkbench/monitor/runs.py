"""Several runs in one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from hkbench.headline import device_name, model_name
from hkbench.monitor.format import duration
from hkbench.monitor.head import condition
from hkbench.monitor.result import Result, mean_text
from hkbench.monitor.screens import RunScreen
from hkbench.records import Outcome, RunFacts
from hkbench.store.costs import money
from hkbench.store.sanitize import one_line
from hkbench.store.state import RunState

_MIN_NAME_WIDTH = 12  # columns of a name
_NAME = 24  # of which it keeps so many where it is longer, before a column gets any
_CELL = 24  # columns of any other cell, at most
#: What is told of each run, from left to right, each with its place in the order in which they get room.
_COLUMNS = (
    ("state", 0),
    ("faster", 1),
    ("solved", 4),
    ("geo-mean", 2),
    ("time", 5),
    ("model", 3),
    ("device", 7),
    ("strategy", 9),
    ("calls", 8),
    ("cost", 6),
)


@dataclass(frozen=True)
class Entry:
    """A run folder of the table."""

    folder: str
    state: RunState | None  #: `None` where there is nothing to look at, or not yet
    facts: RunFacts | None
    trouble: str | None  #: why there is nothing to look at


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
        width = max(20, runs.scrollable_content_region.width or self.app.size.width)
        entries = []
        for index, watch in enumerate(app.watches):
            trouble = app.troubles.get(index)
            state = watch.state if trouble is None else None
            entries.append(Entry(str(watch.paths.root), state, watch.facts, trouble))
        title, lines = runs_table(entries, app.clock(), width)
        self.query_one("#title", Static).update(Text(title), layout=False)
        for index, line in enumerate(lines):
            runs.replace_option_prompt_at_index(index, line)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.monitor.open_run(event.option_index)

    def action_open(self) -> None:
        self.query_one(OptionList).action_select()


def runs_table(entries: Sequence[Entry], now: float, width: int) -> tuple[str, list[Text]]:
    """Return the title and a line for each run, in `width` columns; the least telling is left out first."""
    cells = [_cells(entry.state, entry.facts, now) if entry.state is not None else None for entry in entries]
    wide = [
        max([len(title), *(cell_len(row[at][0]) for row in cells if row is not None)]) + 2
        for at, (title, _) in enumerate(_COLUMNS)
    ]
    longest = max([len("run"), *(cell_len(one_line(entry.folder, 400)) for entry in entries)]) + 2
    room, chosen = width - min(longest, _NAME), []
    for at in sorted(range(len(_COLUMNS)), key=lambda at: _COLUMNS[at][1]):
        if wide[at] <= room:
            chosen.append(at)
            room -= wide[at]
    shown = sorted(chosen)
    name = max(_MIN_NAME_WIDTH, min(longest, width - sum(wide[at] for at in shown)))
    title = "run".ljust(name) + "".join(_COLUMNS[at][0].ljust(wide[at]) for at in shown)
    lines = []
    for entry, row in zip(entries, cells, strict=True):
        if row is None:
            lines.append(_nothing(entry, width))
            continue
        line = Text(no_wrap=True).append(_ending(one_line(entry.folder, 400), name - 2) + "  ", "bold")
        for at in shown:
            text, style = row[at]
            line.append(text + " " * (wide[at] - cell_len(text)), style)
        lines.append(line)
    return title[:width], lines


def _cells(state: RunState, facts: RunFacts | None, now: float) -> list[tuple[str, str]]:
    """Return what the columns say of a run, each with its style."""
    config, result = state.config, Result.of(state)
    word, style = condition(state, now)
    left = state.seconds_left(now)
    device = facts.device.name if facts is not None and facts.device is not None else None
    device = device or (facts.hardware.get("device") if facts is not None else None) or str(config.device)
    compiled, spending = config.compiled_for, state.spending
    cost = money(spending.cost, spending.currency) if spending.calls and spending.cost is not None else ""
    done = "" if state.over else f" {100 * state.progress():.0f} %"
    return [
        (word.partition(":")[0] + done, style),
        (str(result.outcomes[Outcome.FASTER]) if result.timed else "", Outcome.FASTER.style),
        (f"{state.solved if compiled is None else '-'}/{len(state.problems)}", ""),
        (mean_text(result) if compiled is None else "", ""),
        (duration(state.elapsed(now)) if left is None else f"{duration(left)} left", ""),
        (one_line(model_name(config), _CELL), ""),
        (one_line(compiled or device_name(device), _CELL), ""),
        (one_line(config.strategy.name, _CELL), ""),
        (str(spending.calls) if config.replay is None else "recorded", ""),
        (cost + ("+" if cost and spending.unpriced else ""), ""),
    ]


def _nothing(entry: Entry, width: int) -> Text:
    """Return why there is nothing to say of a folder; its name is cut for that, the reason is not."""
    why = (entry.trouble or "reading").removeprefix(entry.folder).partition(": name")[0].strip()
    told = one_line(why, max(20, width - _MIN_NAME_WIDTH - 2))
    name = one_line(entry.folder, 400)
    return Text(
        f"{_ending(name, max(_MIN_NAME_WIDTH, min(cell_len(name), width - cell_len(told) - 2)))}  {told}", "dim"
    )


def _ending(text: str, width: int) -> str:
    """Return the end of a path tells runs apart."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    while cell_len(text) > width - 1:
        text = text[1:]
    return set_cell_size("…" + text, width)
