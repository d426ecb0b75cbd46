"""One problem: its samples over time, and the views of the one below the cursor."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from hkbench.monitor.curve import curve_line
from hkbench.monitor.editor import editor_command
from hkbench.monitor.files import SampleFiles
from hkbench.monitor.pager import Pager
from hkbench.monitor.panes import VIEWS, Look, file_of, show
from hkbench.monitor.screens import RunScreen
from hkbench.monitor.timeline import bar_legend, sample_line
from hkbench.records import Layout, SampleKey
from hkbench.store.figures import speedup_interval
from hkbench.store.samples import ProblemState, SampleState
from hkbench.store.sanitize import one_line
from hkbench.store.tree import branches, way_to

_NAMES = list(VIEWS)


class ProblemScreen(RunScreen):
    """Samples above, a view below; files are read when a view shows them."""

    DEFAULT_CSS = """
    ProblemScreen #title, ProblemScreen #curve, ProblemScreen #views {
        height: 1; text-wrap: nowrap; text-overflow: ellipsis;
    }
    ProblemScreen #samples {
        height: auto; max-height: 40%; min-height: 1; border: none; padding: 0; scrollbar-size: 1 1;
        background: $background;
    }
    ProblemScreen #samples > .option-list--option-highlighted { background: $surface-lighten-2; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "leave", "Back"),
        # Before the widget that has the focus: none of the two scrolls sideways.
        Binding("left", "view(-1)", "View before", show=False, priority=True),
        Binding("right", "view(1)", "View", key_display="1-8 ←→", priority=True),
        *(Binding(str(k), f"choose({k})", show=False) for k in range(1, len(_NAMES) + 1)),
        Binding("space", "page(1)", "Page", show=False),
        Binding("b", "page(-1)", "Page back", show=False),
        Binding("n", "problem(1)", "Problem", key_display="n/p"),
        Binding("p", "problem(-1)", "Problem before", show=False),
        Binding("m", "mark", "Mark"),
        Binding("o", "editor", "Editor"),
        Binding("y", "copy", "Copy path"),
        Binding("g", "end(-1)", "Top of the view", show=False),
        Binding("G", "end(1)", "End of the view", show=False),
    ]

    def __init__(self, problem: str, names: Sequence[str] = ()) -> None:
        """Take `names`, the problems that `n` and `p` go through, in order."""
        super().__init__()
        self.problem = problem  #: that is shown
        self._names = tuple(names) or (problem,)
        self._view = _NAMES[0]
        self._keys: list[tuple[int, int]] = []
        self._lines: list[Text] = []
        self._marked: tuple[int, int] | None = None
        self._looked: tuple[object, ...] | None = None  #: what the view shows: drawn anew when it is something else

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        yield Static(id="curve")
        yield OptionList(id="samples")
        yield Static(id="views")
        yield Pager()
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self._show_names()
        self.follow(None)

    def _state(self) -> ProblemState | None:
        run = self.monitor.state
        return run.problems.get(self.problem) if run is not None else None

    def follow(self, changed: set[str] | None) -> None:
        """Update title, lines of the samples, and the view where its sample changed."""
        state = self._state()
        if state is None:
            self.query_one("#title", Static).update(Text(self.monitor.waiting()), layout=False)
            self._show_curve(ProblemState())
            self._fill(ProblemState())
            self._look(None)
            return
        if changed is None or self.problem in changed or state.running:
            self._show_title(state)
            self._show_curve(state)
            self._fill(state)
        self._look(state)

    def _show_title(self, state: ProblemState) -> None:
        word = state.outcome.label if state.closed or state.correct else "open" if state.started else "not begun"
        best = state.best_sample
        figure = f" {speedup_interval(*best.gain)}" if best is not None and best.gain is not None else ""
        error = f", ended early: {one_line(state.error, 200)}" if state.error is not None else ""
        title = Text(no_wrap=True, overflow="ellipsis")
        title.append(one_line(self.problem, 60), "bold").append("  ").append(word + figure, state.outcome.style)
        if len(self._names) > 1 and self.problem in self._names:
            title.append(f"  {self._names.index(self.problem) + 1} of {len(self._names)}", "dim")
        title.append(f"{error}{self.monitor.place}")
        bars = bar_legend()
        room = self.app.size.width - len(title) - len(bars)
        if room >= 2:
            title.append(" " * room).append_text(bars)
        self.query_one("#title", Static).update(title, layout=False)

    def _show_curve(self, state: ProblemState) -> None:
        curve = self.query_one("#curve", Static)
        line = curve_line(state, self.app.size.width)
        curve.display = line is not None
        if line is not None:
            curve.update(line, layout=False)

    def _fill(self, state: ProblemState) -> None:
        """Fill the list with as little change as there is: the cursor stays on its sample."""
        samples = self.query_one(OptionList)
        run = self.monitor.state
        layout = run.config.strategy.layout if run is not None else Layout.ATTEMPTS
        parents = {attempt: parent.attempt for attempt, parent in state.parents.items()}
        best = state.tally.best
        way = way_to(best[0], parents) if layout is Layout.TREE and best is not None else []
        width = max(20, samples.size.width or self.app.size.width)
        keys: list[tuple[int, int]] = []
        lines: list[Text] = []
        for attempt, before in branches((attempt for attempt, _ in state.samples), parents, layout):
            step = one_line(state.steps[attempt], 30) + " " if layout is Layout.TREE and attempt in state.steps else ""
            for key in sorted(key for key in state.samples if key[0] == attempt):
                keys.append(key)
                room = width - 2 - len(before) - len(step)
                name = Text(before, "dim").append(step, "bold" if attempt in way else "")
                lines.append(name.append_text(sample_line(state, key, room, self.monitor.clock())))
        if keys != self._keys:
            at = self._keys[samples.highlighted] if samples.highlighted is not None and self._keys else None
            samples.clear_options()
            samples.add_options([Option(line) for line in lines])
            # What a person wants to see first: the best, else the newest failure, else the newest one.
            first = best or state.tally.newest_failure or max(state.samples, default=None)
            wanted = at if at in keys else first
            samples.highlighted = keys.index(wanted) if wanted is not None else None
        else:
            for index, line in enumerate(lines):
                if line != self._lines[index]:
                    samples.replace_option_prompt_at_index(index, line)
        self._keys, self._lines = keys, lines

    def _key(self) -> tuple[int, int] | None:
        at = self.query_one(OptionList).highlighted
        return self._keys[at] if at is not None and at < len(self._keys) else None

    def _base(self, state: ProblemState, key: tuple[int, int]) -> tuple[int, int] | None:
        """Return where a diff begins: the marked sample, else what the attempt before came to."""
        if self._marked is not None and self._marked != key:
            return self._marked
        return self._prompted_by(state, key)

    def _prompted_by(self, state: ProblemState, key: tuple[int, int]) -> tuple[int, int] | None:
        """Return the sample that the prompt was made from."""
        parent = state.parents.get(key[0])
        return (parent.attempt, parent.sample) if parent is not None else None

    def _look(self, state: ProblemState | None) -> None:
        """Draw the view, when it would show something else than it does."""
        pager = self.query_one(Pager)
        key = self._key()
        if state is None or key is None:
            if self._looked is not None or not self._keys:
                self._looked = None
                pager.show(Text("No sample yet.", style="dim"))
            return
        base = self._base(state, key)
        sample: SampleState = state.samples[key]
        dark = self.app.current_theme.dark
        looked = (self._view, key, base, dark, sample, state.samples.get(base) if base is not None else None)
        if looked == self._looked:
            return
        same = self._looked is not None and looked[:4] == self._looked[:4]
        self._looked = looked
        files = SampleFiles(self.monitor.watch_now.paths, self._sample_key(key))
        width = max(20, pager.size.width or self.app.size.width)
        asked = base is not None and self._prompted_by(state, key) == base
        look = Look(files, self._sample_key(base) if base else None, asked, width, dark)
        pager.show(show(self._view, look), keep_place=same)

    def _sample_key(self, key: tuple[int, int]) -> SampleKey:
        return SampleKey(problem=self.problem, attempt=key[0], sample=key[1])

    def _show_names(self) -> None:
        names = Text()
        for number, name in enumerate(_NAMES, start=1):
            names.append("  " if number > 1 else "")
            names.append(f"{number} {name}", "reverse bold" if name == self._view else "")
        self.query_one("#views", Static).update(names, layout=False)

    @on(OptionList.OptionHighlighted)
    def _moved(self) -> None:
        self._look(self._state())

    def action_view(self, by: int) -> None:
        self.action_choose((_NAMES.index(self._view) + by) % len(_NAMES) + 1)

    def action_choose(self, number: int) -> None:
        """Show the view of this number."""
        self._view = _NAMES[number - 1]
        self._show_names()
        self._look(self._state())

    def action_page(self, direction: int) -> None:
        pager = self.query_one(Pager)
        pager.scroll_relative(y=direction * max(1, pager.size.height - 1), animate=False)

    def action_mark(self) -> None:
        """Begin diffs with the sample below the cursor; with the same key there again, as before."""
        key = self._key()
        self._marked = None if key == self._marked else key
        word = "the best of the previous attempt" if self._marked is None else f"{self._marked[0]}.{self._marked[1]}"
        self.notify(f"Diffs start from {word}.", markup=False, timeout=3)
        self._look(self._state())

    def action_problem(self, by: int) -> None:
        """Show the problem `by` places further in the table."""
        at = self._names.index(self.problem) if self.problem in self._names else 0
        if not 0 <= at + by < len(self._names):
            self.notify("This is the last problem." if by > 0 else "This is the first problem.", timeout=2)
            return
        self.problem, self._marked, self._looked, self._keys = self._names[at + by], None, None, []
        self.query_one(OptionList).clear_options()
        self.follow(None)

    def action_end(self, direction: int) -> None:
        """Go to the top or the end of the view."""
        pager = self.query_one(Pager)
        pager.scroll_to(y=0 if direction < 0 else pager.max_scroll_y, animate=False)

    def _file(self) -> Path | None:
        """Return the file that the view shows; where it shows several the first of them."""
        key = self._key()
        if key is None:
            self.notify("There is no sample yet.", severity="warning")
            return None
        path = file_of(self._view, SampleFiles(self.monitor.watch_now.paths, self._sample_key(key)))
        if not path.exists():
            self.notify(f"There is no {one_line(str(path), 200)} yet.", severity="warning", markup=False)
            return None
        return path

    def action_editor(self) -> None:
        """Open the view's file in $VISUAL or $EDITOR; the screen comes back when the editor ends."""
        path, editor = self._file(), editor_command()
        if path is None:
            return
        if editor is None:
            self.notify("No editor: set EDITOR to one.", severity="warning")
            return
        try:
            with self.app.suspend():
                code = subprocess.run([*editor, str(path)], check=False).returncode
        except SuspendNotSupported:
            self.notify("This terminal cannot show an editor meanwhile.", severity="warning")
        except OSError as error:
            self.notify(f"{editor[0]} cannot be started: {error}", severity="error", markup=False)
        else:
            self.refresh()
            if code:
                self.notify(f"{editor[0]} ended with exit code {code}.", severity="warning", markup=False)

    def action_copy(self) -> None:
        """Copy the path of the view's file to the terminal's clipboard, and show it for terminals that have none."""
        path = self._file()
        if path is not None:
            self.app.copy_to_clipboard(str(path.resolve()))
            self.notify(f"Copied {one_line(str(path.resolve()), 400)}", markup=False, timeout=5)

    def action_leave(self) -> None:
        self.dismiss()
