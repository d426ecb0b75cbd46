"""The monitor's screen: one run folder at a time, looked at in turn; nothing is ever written to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from hkbench.errors import HkbenchError
from hkbench.monitor.help import HelpScreen
from hkbench.monitor.live import Watch
from hkbench.monitor.overview import OverviewScreen
from hkbench.monitor.screens import RunScreen
from hkbench.monitor.state import RunState
from hkbench.store.plain import one_line


class MonitorApp(App[None]):
    """Follows the run of `watch`; `r` goes to the next of `watches`."""

    TITLE = "hkbench monitor"
    ENABLE_COMMAND_PALETTE = False
    CSS = "Screen { layout: vertical; } Footer { height: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", "Quit", show=False, priority=True),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("r", "next_run", "Next run"),
    ]

    def __init__(
        self, watches: Sequence[Watch], *, refresh: float = 1.0, clock: Callable[[], float] = time.time
    ) -> None:
        """`refresh` is in seconds between two looks; `clock` gives seconds since the epoch."""
        super().__init__()
        self._watches = tuple(watches)
        self._at = 0
        self._refresh = refresh
        self._shown: RunState | None = None
        self.clock = clock
        self.trouble: str | None = None  #: why there is nothing to look at

    @property
    def watch_now(self) -> Watch:
        """The run folder that is shown."""
        return self._watches[self._at]

    @property
    def state(self) -> RunState | None:
        """`None` while there is no run."""
        return self.watch_now.state if self.trouble is None else None

    @property
    def place(self) -> str:
        """Which of several folders it is; empty for a single one."""
        return f"  [{self._at + 1} of {len(self._watches)} runs]" if len(self._watches) > 1 else ""

    def get_default_screen(self) -> Screen[None]:
        return OverviewScreen(id="_default")

    def on_mount(self) -> None:
        # The first look at a long run takes a second: the screen is there before.
        self.call_after_refresh(self.look)
        self.set_interval(self._refresh, self.look)

    def look(self) -> None:
        """Take in what is new and show it."""
        self.trouble = None
        try:
            self.watch_now.look()
        except (HkbenchError, OSError) as error:  # no run yet, a damaged one, one that is being replaced
            self.trouble = str(error)
        state = self.state
        changed = state.take_changed() if state is not None else set()
        replaced = state is not self._shown
        self._shown = state
        if isinstance(self.screen, RunScreen):
            self.screen.follow(None if replaced else changed)

    def action_help(self) -> None:
        self.push_screen(HelpScreen())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - of textual
        """A key that does nothing here is not shown."""
        return action != "next_run" or len(self._watches) > 1

    def action_next_run(self) -> None:
        """Go to the next run folder, from its overview on."""
        self._at = (self._at + 1) % len(self._watches)
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.look()

    def waiting(self) -> str:
        """What to say where there is no run to show."""
        folder = one_line(str(self.watch_now.paths.root), 200)
        return f"waiting for a run in {folder}: {one_line(self.trouble or 'reading', 300)}"
