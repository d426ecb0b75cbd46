"""The faces of `run_batch.py --display`: each is told the run's events and shows them its own way."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Protocol, TextIO

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live

from hkbench.errors import UsageError
from hkbench.headline import plural
from hkbench.monitor.describe import describe, failure, matters, trouble
from hkbench.monitor.render import frame
from hkbench.records import AdviceReceived, AnyEvent, CallRetried, ReplyReceived, RunConfig, RunFacts
from hkbench.store.state import RunState

KINDS = ("rich", "plain", "log", "json")


class Display(Protocol):
    """Show a run while it goes on. `OSError` of the stream (a closed pipe) passes through."""

    def on_event(self, event: AnyEvent) -> None:
        """Take the next event of the run."""

    def close(self) -> None:
        """Show the last state and let go of the terminal. The stream stays open."""


class PlainDisplay:
    """A line for every event that matters to whoever waits: the time of day, the samples judged, what happened.

    What many calls meet at once is told of once.
    """

    def __init__(self, stream: TextIO, config: RunConfig, history: Iterable[AnyEvent] = ()) -> None:
        self._stream = stream
        self._state = RunState.after(history, config)
        self._time = 0.0  #: of the last event
        self._tries = 0  #: the most that a line told of, since the service answered last
        self._failure: str | None = None  #: the last one told of
        self._repeated = 0  #: calls and problems that it met after that

    def on_event(self, event: AnyEvent) -> None:
        self._state.apply(event)
        self._time = event.time
        if isinstance(event, CallRetried):
            if event.tries > self._tries:
                self._tries = event.tries
                self._write(f"service: {trouble(event)}")
        elif isinstance(event, ReplyReceived | AdviceReceived):
            self._tries = 0
        elif matters(event):
            said = failure(event)
            if said is not None and said == self._failure:
                self._repeated += 1
                return
            self._say_repeated()
            self._failure = said or self._failure
            self._write(describe(event))

    def close(self) -> None:
        self._say_repeated()
        self._stream.flush()

    def _say_repeated(self) -> None:
        if self._repeated:
            self._write(f"the same error {plural(self._repeated, 'more time')}")
        self._repeated = 0

    def _write(self, line: str) -> None:
        clock = datetime.fromtimestamp(self._time, UTC).astimezone().strftime("%H:%M:%S")
        state = self._state
        width = len(str(state.config.samples * state.config.attempts * len(state.problems)))
        self._stream.write(f"{clock} [{state.judged:>{width}}/{state.most}] {line}\n")
        self._stream.flush()


class LogDisplay:
    """A line for every event, with its time (UTC)."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def on_event(self, event: AnyEvent) -> None:
        stamp = datetime.fromtimestamp(event.time, UTC).isoformat(timespec="milliseconds")
        self._stream.write(f"{stamp} {describe(event)}\n")
        self._stream.flush()

    def close(self) -> None:
        self._stream.flush()


class JsonDisplay:
    """The events as the journal has them, one JSON object a line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def on_event(self, event: AnyEvent) -> None:
        self._stream.write(event.model_dump_json() + "\n")
        self._stream.flush()

    def close(self) -> None:
        self._stream.flush()


class RichDisplay:
    """The monitor's view, redrawn in place once a second by a thread of its own."""

    def __init__(self, console: Console, state: RunState, name: str, facts: RunFacts | None) -> None:
        self._console, self._state, self._name, self._facts = console, state, name, facts
        self._lock = threading.Lock()  # events come while the other thread draws
        self._live = Live(console=console, get_renderable=self._view, refresh_per_second=1, vertical_overflow="crop")
        self._live.start()

    def _view(self) -> RenderableType:
        height = self._console.height if self._console.is_terminal else None
        view = frame(self._state, self._name, time.time(), facts=self._facts, height=height)
        return _Alone(view, self._lock)

    def on_event(self, event: AnyEvent) -> None:
        with self._lock:
            self._state.apply(event)

    def close(self) -> None:
        self._live.stop()


class _Alone:
    """A view that is drawn while nothing changes what it shows."""

    def __init__(self, view: RenderableType, lock: threading.Lock) -> None:
        self._view, self._lock = view, lock

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with self._lock:
            drawn = list(console.render(self._view, options))
        yield from drawn


def make_display(
    kind: str | None,
    stream: TextIO,
    config: RunConfig,
    *,
    name: str = "run",
    facts: RunFacts | None = None,
    history: Sequence[AnyEvent] = (),
) -> Display:
    """Make the display called `kind`, on `stream`; `None` picks rich on a terminal and plain elsewhere.

    `name` is what the rich view calls the run; `history` are the events of the sessions before a resume, which
    it takes in without showing them one by one. Raises UsageError for an unknown kind.
    """
    match kind or ("rich" if stream.isatty() else "plain"):
        case "rich":
            prices = (facts.price, facts.judge_price) if facts is not None else ()
            return RichDisplay(Console(file=stream), RunState.after(history, config, *prices), name, facts)
        case "plain":
            return PlainDisplay(stream, config, history)
        case "log":
            return LogDisplay(stream)
        case "json":
            return JsonDisplay(stream)
        case unknown:
            raise UsageError(f"there is no display {unknown!r}: choose one of {', '.join(KINDS)}")
