"""What a command is doing, before it has anything else to show: the bar of eval.py, the first line of a batch."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from hkbench.records import Stage

#: A stage as people call it, and the share of an evaluation's steps that are done when it begins.
_STAGES = {
    Stage.PARSE: ("read", 1),
    Stage.LOAD: ("load", 2),
    Stage.BUILD: ("build", 2),
    Stage.RUN: ("compare", 4),
    Stage.TIME: ("time", 5),
    Stage.SHAPES: ("further shapes", 6),
}
_STEPS = 7


class Steps:
    """The steps of one evaluation on standard error, not in the verdict; use as a context manager.

    A bar on a terminal, else a line for each step.

    The bar is drawn once a second: on a CPU it would disturb what is measured more often.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = time.monotonic()
        self._stage = ""
        self._bar: Progress | None = None
        if stream.isatty():
            columns = (BarColumn(20), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(file=stream), refresh_per_second=1, transient=True)
            self._task = self._bar.add_task("", total=_STEPS)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, what: str, done: int = 0) -> None:
        """Show what is done from here on; `done` of `_STEPS` are over."""
        if self._bar is not None:
            self._bar.update(self._task, description=what, completed=done)
        else:
            self._stream.write(f"{time.monotonic() - self._begun:6.1f} s  {what}\n")
            self._stream.flush()

    def on_stage(self, stage: Stage, _device: int | None) -> None:
        """Begin a stage."""
        self._stage, done = _STAGES.get(stage, (stage.value, 0))
        self.say(self._stage, done)

    def on_step(self, step: str) -> None:
        """Begin a step within the stage."""
        done = next((done for name, done in _STAGES.values() if name == self._stage), 0)
        self.say(f"{self._stage}: {step}", done)


@contextmanager
def doing(what: str, display: str | None) -> Iterator[None]:
    """Say `what` while the block runs, as the display of a batch is chosen; those for programs stay as they are."""
    if display in ("json", "log"):
        yield
    elif display != "plain" and sys.stdout.isatty():
        with Console().status(what):
            yield
    else:
        print(f"{datetime.now().astimezone():%H:%M:%S} {what}", flush=True)
        yield
