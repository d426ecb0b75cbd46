"""Writing a file so that a reader sees the old text or the new one, never a part."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomic(path: Path, text: str | bytes) -> None:
    """Put `text` at `path` (UTF-8, or bytes, as it is) by way of a temporary file beside it; on disk when it returns.

    The folder must exist; `OSError` passes through (a full disk is the machine's failure, and the old file
    stays). A lone surrogate, which UTF-8 cannot hold and a JSON reply can, is written as its escape.
    """
    data = text if isinstance(text, bytes) else text.encode("utf-8", errors="backslashreplace")
    if _holds(path, data):
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        # Not tempfile: its files are private to the user, and results are there to be read.
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _holds(path: Path, data: bytes) -> bool:
    """Return whether the file holds `data`.

    A resume would write most files a second time as they are, and each would wait for the disk.
    """
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


def _sync_folder(folder: Path) -> None:
    """Write the folder to the disk: the rename lives there, and without this a power cut can undo it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
