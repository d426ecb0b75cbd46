"""The private folder of one evaluation, into which a candidate may have put anything."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from hkbench.errors import InternalError
from hkbench.sandbox import folders

REMOVE_SECONDS = 120.0  #: for as many files as a runner's limits allow


@asynccontextmanager
async def private_folder(path: Path) -> AsyncIterator[Path]:
    """Make the folder, empty, and remove it afterwards with all that is in it.

    What cannot be removed within `REMOVE_SECONDS` is left: the verdict counts all the same, and the next evaluation
    there tries again.

    Raises:
        InternalError: what an earlier evaluation left cannot be removed.
    """
    path = path.resolve()
    try:
        await asyncio.to_thread(folders.remove, path, REMOVE_SECONDS)
        path.mkdir(parents=True)
    except OSError as error:
        raise InternalError(f"the folder for builds cannot be emptied: {error}; remove {path} by hand") from error
    try:
        yield path
    finally:
        with suppress(OSError):
            await asyncio.to_thread(folders.remove, path, REMOVE_SECONDS)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder in the system's for temporary files, for evaluations, and remove it as `private_folder` does."""
    path = Path(tempfile.mkdtemp(prefix="hkbench-"))
    try:
        yield path
    finally:
        with suppress(OSError):
            folders.remove(path, REMOVE_SECONDS)
