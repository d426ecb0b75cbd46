"""The monitor's screen: one run folder at a time, or a table of several; nothing is ever written to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from hkbench.errors import HkbenchError
from hkbench.monitor.colours import DARK, LIGHT
from hkbench.monitor.device_screen import DevicesScreen
from hkbench.monitor.gauges import Gauges
from hkbench.monitor.help import HelpScreen
from hkbench.monitor.live import Watch
from hkbench.monitor.overview import OverviewScreen
from hkbench.monitor.runs import RunsScreen
from hkbench.monitor.screens import RunScreen
from hkbench.store.sanitize import one_line
from hkbench.store.state import RunState


class MonitorApp(App[None]):
    """Follow the runs of `watches`: of several a table, of one its overview. `r` goes to the next."""

    TITLE = "hkbench monitor"
    ENABLE_COMMAND_PALETTE = False
    CSS = "Screen { layout: vertical; } Footer { height: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "interrupt", "Quit", show=False, priority=True),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("d", "devices", "Devices"),
        Binding("t", "light", "Light or dark", show=False),
        Binding("r", "next_run", "Next run"),
    ]

    def __init__(
        self, watches: Sequence[Watch], *, refresh: float = 1.0, clock: Callable[[], float] = time.time
    ) -> None:
        """Take `refresh`, the seconds between two looks, and `clock`, which gives seconds since the epoch."""
        super().__init__()
        self.ansi_theme_dark, self.ansi_theme_light = DARK, LIGHT
        self.watches = tuple(watches)
        self.troubles: dict[int, str] = {}  #: of `watches` by index, why there is nothing to look at
        self.gauges = Gauges()
        self._at = 0
        self._seen: set[int] = set()  # of `watches`, those that were looked at
        self._refresh = refresh
        self._shown: RunState | None = None
        self.clock = clock

    @property
    def watch_now(self) -> Watch:
        """The run folder that is shown."""
        return self.watches[self._at]

    @property
    def trouble(self) -> str | None:
        """Why there is nothing to look at."""
        return self.troubles.get(self._at)

    @property
    def state(self) -> RunState | None:
        """`None` while there is no run."""
        return self.watch_now.state if self.trouble is None else None

    @property
    def place(self) -> str:
        """Which of several folders it is; empty for a single one."""
        return f"  [{self._at + 1} of {len(self.watches)} runs]" if len(self.watches) > 1 else ""

    @property
    def is_nested(self) -> bool:
        """Whether there is a screen to go back to."""
        return len(self.screen_stack) > 1

    def get_default_screen(self) -> Screen[None]:
        return RunsScreen(id="_default") if len(self.watches) > 1 else OverviewScreen(id="_default")

    def on_mount(self) -> None:
        # The first look at a long run takes a second: the screen is there before.
        self.call_after_refresh(self.look)
        self.set_interval(self._refresh, self.look)

    def on_unmount(self) -> None:
        self.gauges.close()

    def look(self) -> None:
        """Take in what is new and show it."""
        if isinstance(self.screen, RunsScreen):
            self._look_at_all(self.screen)
            return
        self._look_at(self._at)
        state, screen = self.state, self.screen
        self.gauges.follow(state)
        if isinstance(screen, RunScreen) and not screen.has_widgets:
            return
        changed = state.take_changed() if state is not None else set()
        replaced = state is not self._shown
        self._shown = state
        if isinstance(screen, RunScreen):
            screen.follow(None if replaced else changed)

    def _look_at(self, index: int) -> None:
        self._seen.add(index)
        self.troubles.pop(index, None)
        try:
            self.watches[index].look()
        except (HkbenchError, OSError) as error:  # no run yet, a damaged one, one that is being replaced
            self.troubles[index] = str(error)

    def _look_at_all(self, screen: RunsScreen) -> None:
        """Look at new runs one by one: the first look at a long one takes a second."""
        for index in sorted(self._seen):
            self._look_at(index)
        new = next((index for index in range(len(self.watches)) if index not in self._seen), None)
        if new is not None:
            self._look_at(new)
            self.call_after_refresh(self.look)
        if screen.has_widgets:
            screen.follow(None)

    def open_run(self, index: int) -> None:
        """Show the overview of this one of `watches`."""
        self._at = index
        self.push_screen(OverviewScreen())
        self.call_after_refresh(self.look)

    def action_help(self) -> None:
        self.push_screen(HelpScreen())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - of textual
        """Return whether an action does something here: a key that does nothing is not shown."""
        if action == "next_run":
            return len(self.watches) > 1 and not isinstance(self.screen, RunsScreen)
        return action != "devices" or not isinstance(self.screen, RunsScreen | DevicesScreen)

    def action_interrupt(self) -> None:
        self.exit()

    def action_light(self) -> None:
        """Change from dark to light colours, and back."""
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"
        if isinstance(self.screen, RunScreen):
            self.screen.follow(None)

    def action_devices(self) -> None:
        self.push_screen(DevicesScreen())

    def action_next_run(self) -> None:
        """Go to the next run folder, from its overview on."""
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.open_run((self._at + 1) % len(self.watches))

    def waiting(self) -> str:
        """Return what to say where there is no run to show."""
        folder = one_line(str(self.watch_now.paths.root), 200)
        if self.trouble is None:
            return f"reading {folder}"
        return f"waiting for a run in {folder}: {one_line(self.trouble, 300)}"
