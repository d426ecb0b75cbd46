"""Reading journal.jsonl: all at once, or as it grows."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hkbench.records import AnyEvent
from hkbench.store.collector import collector_paused

_LAST = 1 << 16  #: bytes at a journal's end that surely hold its last event
_EVENT: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)


@dataclass(frozen=True)
class CorruptEntry:
    """Something in the run folder that could not be read. Reported, and otherwise passed over."""

    file: str  #: relative to the run folder
    line: int | None  #: counted from 1, for a line of the journal
    message: str


def read_events(path: Path) -> Iterator[AnyEvent | CorruptEntry]:
    """Yield the journal's events in order, a line at a time; a missing journal has none.

    A last line without its newline is what a crash in the middle of a write leaves: it is an event when it is
    whole, and otherwise a `CorruptEntry` that says so.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        for number, line in enumerate(file, start=1):
            found = _parse(line, path.name, number)
            if found is not None:
                yield found


@collector_paused()
def read_history(path: Path) -> list[AnyEvent]:
    """Return the journal's events in order, without those lines that are corrupt."""
    return [event for event in read_events(path) if not isinstance(event, CorruptEntry)]


def read_last_event(path: Path) -> AnyEvent | None:
    """Read the journal's last whole event, not the rest; `None` for one that is missing, empty or corrupt."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST))
            lines = file.read().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        if line.strip():
            found = _parse(line, path.name, 0)
            return None if isinstance(found, CorruptEntry) else found
    return None


@dataclass(frozen=True)
class News:
    """What one look at the journal brought."""

    events: tuple[AnyEvent, ...] = ()
    corrupt: tuple[CorruptEntry, ...] = ()
    restarted: bool = False  #: the journal was replaced, cut or removed: forget what came before `events`


class JournalTail:
    """Read a journal as it grows: each `poll` gives what was added since the last one.

    Only whole lines are taken, so a line that is being written waits for the next poll. A journal that does
    not exist (yet, or any more) gives no events. One that became shorter, or is another file, is read anew.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._line = 0
        self._file: tuple[int, int] | None = None

    def poll(self, most: int | None = None) -> News:
        """Return what was added; with `most`, whole lines of about so many bytes, and the next poll goes on there."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return News(restarted=self._rewind(None))
        with file:
            status = os.fstat(file.fileno())
            identity = (status.st_dev, status.st_ino)
            restarted = False
            if self._file != identity or status.st_size < self._offset:
                restarted = self._rewind(identity)
            file.seek(self._offset)
            data = file.read(most)
            if most is not None and b"\n" not in data:
                data += file.read()  # a line that is longer
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return self._take(whole, restarted)

    def _rewind(self, identity: tuple[int, int] | None) -> bool:
        """Start from the top of `identity`; whether anything had been read before."""
        had_read = self._offset > 0
        self._file, self._offset, self._line = identity, 0, 0
        return had_read

    def _take(self, whole: bytes, restarted: bool) -> News:
        events: list[AnyEvent] = []
        corrupt: list[CorruptEntry] = []
        for line in io.BytesIO(whole):  # splits at newlines only, as a file does
            self._line += 1
            found = _parse(line, self._path.name, self._line)
            if isinstance(found, CorruptEntry):
                corrupt.append(found)
            elif found is not None:
                events.append(found)
        return News(tuple(events), tuple(corrupt), restarted)


def _parse(line: bytes, file: str, number: int) -> AnyEvent | CorruptEntry | None:
    """Return the event on a line; `None` for an empty line."""
    if not line.strip():
        return None
    try:
        event = _EVENT.validate_json(line)
    except ValidationError as error:
        if not line.endswith(b"\n"):
            return CorruptEntry(file, number, "the last line was cut in the middle of a write")
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return CorruptEntry(file, number, f"not an event: {where + ': ' if where else ''}{first['msg']}")
    if "time" not in event.model_fields_set or not math.isfinite(event.time):
        return CorruptEntry(file, number, "not an event: time is not a finite number")
    return event
