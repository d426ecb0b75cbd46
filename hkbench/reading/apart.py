"""Read a candidate's file in a process of its own, so that no text takes this one's time, memory or stack."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field
from typing import Any

from hkbench.reading.budget import SOURCE_BYTES
from hkbench.reading.lines import SourceLines, lines_of
from hkbench.reading.reader import read_candidate
from hkbench.reading.rules import finding
from hkbench.records import BackendName, Finding, Track
from hkbench.sandbox.apart import Tell, apart

SECONDS = 10.0  #: of processor time, for the largest file that is read and the whole budget of reading it
MEMORY_BYTES = 2 << 30
_FIELDS = ("lineno", "offset", "end_lineno", "end_offset")


@dataclass(frozen=True)
class Reading:
    """What a file is, by its text alone."""

    error: SyntaxError | ValueError | None = None  #: why it is not Python
    unread: str | None = None  #: why it is not known whether it is: the limit that ended its parser
    findings: tuple[Finding, ...] = ()
    lines: SourceLines = field(default_factory=SourceLines)


def read_apart(source: bytes, backend: BackendName, track: Track) -> Reading:
    """Parse a file and read it, see `read_candidate`. Findings come from a file that is Python."""
    if len(source) > SOURCE_BYTES:
        return Reading(unread=f"it has more than {SOURCE_BYTES} bytes")

    def work(tell: Tell) -> None:
        error = _error_in(source)
        tell(error)
        if error is not None:
            return
        text = source.decode(errors="replace")
        tell(lines_of(text).model_dump(mode="json"))
        tell([one.model_dump(mode="json") for one in read_candidate(text, backend, track)])

    told = apart(work, SECONDS, MEMORY_BYTES)
    if not told.said:
        return Reading(unread=told.cut)
    if told.said[0] is not None:
        return Reading(error=_exception(told.said[0]))
    lines = SourceLines.model_validate(told.said[1]) if len(told.said) > 1 else SourceLines()
    if len(told.said) < 3:
        return Reading(findings=(finding("unreadable", None, told.cut or "", track),), lines=lines)
    return Reading(findings=tuple(Finding.model_validate(one) for one in told.said[2]), lines=lines)


def _error_in(source: bytes) -> dict[str, Any] | None:
    """Return what the parser says against the file, in values that JSON can hold."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a stray backslash in the candidate is no message for the user
            ast.parse(source)
    except SyntaxError as error:
        return {"message": _plain(str(error.msg)), **{name: getattr(error, name) for name in _FIELDS}}
    except ValueError as error:  # a null byte
        return {"message": _plain(str(error))}
    except (RecursionError, MemoryError):
        return {"message": "the file is nested too deeply to be parsed"}
    return None


def _plain(text: str) -> str:
    return text.encode(errors="replace").decode()


def _exception(said: dict[str, Any]) -> SyntaxError | ValueError:
    """Return the parser's exception once more."""
    if "lineno" not in said:
        return ValueError(said["message"])
    line, offset, end_line, end_offset = (said[name] for name in _FIELDS)
    return SyntaxError(said["message"], ("<unknown>", line, offset, None, end_line, end_offset))
