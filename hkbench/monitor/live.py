"""The live view of a run folder. It only reads: the run neither knows nor waits for it."""

from __future__ import annotations

import contextlib
import time

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from hkbench.errors import InputMissing
from hkbench.monitor.render import frame
from hkbench.monitor.state import RunState
from hkbench.store.layout import RunPaths
from hkbench.store.plain import one_line
from hkbench.store.reader import JournalTail, RunFile, read_run_file


class Watch:
    """Follows a run folder, which may not exist yet, may vanish, and may come back as another run."""

    def __init__(self, paths: RunPaths) -> None:
        self.paths = paths
        self.damaged = 0  #: lines of the journal that could not be read
        self._run: RunFile | None = None
        self._state: RunState | None = None
        self._tail = JournalTail(paths.journal)

    def look(self) -> None:
        """Take in what is new. `InputMissing` while there is no run; `ConfigurationError` for a bad run.json."""
        if self._run is None or not self.paths.run.exists():
            self._forget()
            self._run = read_run_file(self.paths)
        news = self._tail.poll()
        if news.restarted:
            self._run = read_run_file(self.paths)
        if news.restarted or self._state is None:
            self._state = RunState(self._run.config)
            self.damaged = 0
        for event in news.events:
            self._state.apply(event)
        self.damaged += len(news.damage)

    def _forget(self) -> None:
        self._run, self._state = None, None
        self._tail = JournalTail(self.paths.journal)

    @property
    def ended(self) -> bool:
        return self._state is not None and self._state.closed is not None

    def view(self, now: float, height: int | None = None) -> RenderableType:
        """The frame at `now`; a line that says so when there is no run."""
        if self._state is None or self._run is None:
            return Text(f"waiting for a run in {one_line(str(self.paths.root), 200)}", overflow="fold")
        name = self.paths.root.resolve().name
        if self.damaged:
            name += f" ({self.damaged} unreadable lines in the journal)"
        return frame(self._state, name, now, facts=self._run.facts, height=height)


def run_monitor(paths: RunPaths, *, once: bool = False, refresh: float = 1.0, console: Console | None = None) -> None:
    """Show a run until it is closed or Ctrl-C is pressed; one plain frame if `once` or not on a terminal.

    `refresh` is in seconds. Without a run to show, the live view waits for one; a single frame raises
    `InputMissing`. A damaged run.json raises `ConfigurationError`.
    """
    console = console or Console()
    watch = Watch(paths)
    if once or not console.is_terminal:
        watch.look()
        console.print(watch.view(time.time()))
        return
    try:
        with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
            while not watch.ended:
                with contextlib.suppress(InputMissing):  # the view says that it waits
                    watch.look()
                live.update(watch.view(time.time(), console.height), refresh=True)
                if not watch.ended:
                    time.sleep(refresh)
    except KeyboardInterrupt:
        return  # how a person ends a live view
