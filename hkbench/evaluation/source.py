"""The file of a candidate: read once, and refused where it is no Python or has no `ModelNew`."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hkbench.evaluation import failures
from hkbench.reading import SOURCE_BYTES, Reading
from hkbench.records import FailureKind, Stage


def source_of(code: Path) -> tuple[bytes, str]:
    """Return as many bytes of the file as are ever read, and the SHA-256 of the whole.

    One byte more than the limit tells that the file is too long.
    """
    with code.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        return file.read(SOURCE_BYTES + 1), digest


def require_python(source: bytes, read: Reading) -> None:
    """Refuse what is not Python or never mentions ModelNew, before a process is spent on it."""
    error = read.error
    if error is not None:
        place = f"line {error.lineno}: " if isinstance(error, SyntaxError) else ""
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        shown = failures.shown_syntax_error(error, source) if isinstance(error, SyntaxError) else None
        raise failures.failed(Stage.PARSE, FailureKind.SYNTAX_ERROR, f"{place}{text}", shown)
    if read.unread is not None:
        raise failures.failed(Stage.PARSE, FailureKind.LIMIT, f"the file cannot be parsed: {read.unread}")
    if b"ModelNew" not in source:
        message = "the file never mentions ModelNew; the evaluator looks for a class of that name"
        raise failures.failed(Stage.PARSE, FailureKind.NO_MODEL_NEW, message)
