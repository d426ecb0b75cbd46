"""The live view of a run folder. It only reads: the run neither knows nor waits for it."""

from __future__ import annotations

import platform
import shlex
import time
from collections.abc import Sequence
from contextlib import suppress

from rich.console import Console, RenderableType
from rich.text import Text

from hkbench.errors import InputMissing, InternalError, Unavailable
from hkbench.monitor.devices import device_lines, devices_now
from hkbench.monitor.files import SampleFiles, Unreadable
from hkbench.monitor.gauges import read_once
from hkbench.monitor.render import frame
from hkbench.monitor.snapshot import Snapshot, take_snapshot
from hkbench.records import RunFacts, SampleKey
from hkbench.shipped import batch_command, installing
from hkbench.store.layout import RunPaths
from hkbench.store.lock import is_free
from hkbench.store.reader import JournalTail, RunFile, read_run_file
from hkbench.store.sanitize import one_line
from hkbench.store.state import RunState

#: Bytes of the journal that are taken in at a time. The events of a long one, all alive at once, would double the time:
#: the garbage collector goes over them again and again.
_PIECE = 1 << 18


class Watch:
    """Follow a run folder, which may not exist yet, may vanish, and may come back as another run."""

    def __init__(self, paths: RunPaths) -> None:
        self.paths = paths
        self.corrupt_lines = 0  #: lines of the journal that could not be read
        self._run: RunFile | None = None
        self._state: RunState | None = None
        self._tail = JournalTail(paths.journal)
        self._identity: tuple[int, int, int] | None = None
        self._completed: set[SampleKey] = set()  # samples whose verdict was read

    def look(self) -> None:
        """Take in what is new. `InputMissing` while there is no run; `ConfigurationError` for a bad run.json."""
        identity = self._identify()
        if self._run is None or identity != self._identity:
            self._forget()
            self._run = read_run_file(self.paths)
            self._identity = identity
        if self._state is None:
            self._take()
        # The lock is asked for before the journal is read: what a run wrote before it let go of the lock is seen then.
        alive = self._is_alive()
        news = self._take()
        self._complete()
        if alive is False and not news and self._state is not None and self._state.last_event is not None:
            self._state.mark_killed()
        elif self._state is not None:
            self._state.alive = alive

    def _is_alive(self) -> bool | None:
        """Return whether a process writes the run, by its lock; `None` where that is not known, as on another host."""
        if self._state is None or self._state.closed is not None or self._run is None:
            return None
        if (self._state.host or self._run.facts.hardware.get("host")) != platform.node():
            return None
        free = is_free(self.paths.lock)
        return None if free is None else not free

    def _take(self) -> bool:
        """Take in the new events; whether there were any."""
        assert self._run is not None
        any_news = False
        while True:
            news = self._tail.poll(_PIECE)
            if news.restarted:
                self._run = read_run_file(self.paths)
            if news.restarted or self._state is None:
                self._state = RunState(self._run.config, self._run.facts.price, self._run.facts.judge_price)
                self.corrupt_lines = 0
            for event in news.events:
                self._state.apply(event)
            self.corrupt_lines += len(news.corrupt)
            if not (news.events or news.corrupt):
                return any_news
            any_news = True

    def _complete(self) -> None:
        """Take the intervals of the best samples from their verdicts, where an older journal does not tell them."""
        for name, problem in self._state.problems.items() if self._state is not None else ():
            while (best := problem.tally.best) is not None and problem.samples[best].lacks_interval:
                key = SampleKey(problem=name, attempt=best[0], sample=best[1])
                if key in self._completed:
                    break
                self._completed.add(key)
                with suppress(Unreadable):
                    problem.complete(best, SampleFiles(self.paths, key).verdict())

    def _identify(self) -> tuple[int, int, int] | None:
        """Return which run.json lies there: a new run may get its journal under the inode of the old one."""
        try:
            found = self.paths.run.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _forget(self) -> None:
        self._run, self._state = None, None
        self._completed.clear()
        self._tail = JournalTail(self.paths.journal)

    @property
    def resume(self) -> str:
        """The command that resumes the run."""
        return f"{batch_command()} --resume {shlex.quote(str(self.paths.root))}"

    @property
    def state(self) -> RunState | None:
        """`None` while there is no run."""
        return self._state

    @property
    def facts(self) -> RunFacts | None:
        return self._run.facts if self._run is not None else None

    @property
    def name(self) -> str:
        """The folder's name, and how many lines of its journal could not be read."""
        name = self.paths.root.resolve().name
        return f"{name} ({self.corrupt_lines} unreadable lines in the journal)" if self.corrupt_lines else name

    def snapshot(self, now: float) -> Snapshot:
        """Return the state at `now`, with one reading of its devices. `InputMissing` when there is no run."""
        if self._state is None:
            raise InputMissing(f"{self.paths.root} holds no run")
        readings, note = read_once(self._state)
        return take_snapshot(self._state, str(self.paths.root), now, self.corrupt_lines, readings, note, self.resume)

    def view(self, now: float, height: int | None = None) -> RenderableType:
        """Return the frame at `now`, with one reading of the devices; a line that says so when there is no run."""
        if self._state is None or self._run is None:
            return Text(f"waiting for a run in {one_line(str(self.paths.root), 200)}", overflow="fold")
        readings, note = read_once(self._state)
        devices = devices_now(self._state, now, readings)
        lines = device_lines(devices, note, len(devices)) if devices else []
        return frame(
            self._state, self.name, now, facts=self._run.facts, height=height, devices=lines, resume=self.resume
        )


def run_monitor(
    folders: Sequence[RunPaths],
    *,
    once: bool = False,
    as_json: bool = False,
    refresh: float = 1.0,
    console: Console | None = None,
) -> None:
    """Show runs until a person ends the view; one plain frame of each if `once` or not on a terminal.

    `as_json` prints a `Snapshot` of each, one a line. `refresh` is in seconds. Without a run to show, the live view
    waits for one; a frame raises `InputMissing`, and `ConfigurationError` for a damaged run.json, which the live view
    shows until it is mended.
    """
    console = console or Console()
    if not (once or as_json) and console.is_terminal:
        _live(folders, refresh)
        return
    for paths in folders:
        watch = Watch(paths)
        watch.look()
        if as_json:
            snapshot = watch.snapshot(time.time())
            console.file.write(snapshot.model_dump_json() + "\n")
        else:
            console.print(watch.view(time.time()))


def _live(folders: Sequence[RunPaths], refresh: float) -> None:
    try:  # here, because textual takes a quarter of a second, which no other command should pay
        from hkbench.monitor.app import MonitorApp
    except ModuleNotFoundError as error:
        raise Unavailable(
            f"the screen needs {error.name}: run `{installing(str(error.name))}`, or look with --once"
        ) from None
    app = MonitorApp([Watch(paths) for paths in folders], refresh=refresh)
    app.run()
    if app.return_code:
        raise InternalError("the monitor's screen failed; its traceback stands above")
