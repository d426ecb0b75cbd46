"""Where runs lie: those below a folder, and the link `latest` that names the newest."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hkbench.store.layout import RunPaths

RESULTS = Path("results")  #: where runs lie unless a command names another folder
LATEST = "latest"
_MAX_DEPTH = 5  #: folders between a folder that was named and a run in it


def holds_run(folder: Path) -> bool:
    return RunPaths(folder).run.is_file()


def runs_below(root: Path) -> list[Path]:
    """Return the folders of all runs in `root`, the last begun or resumed first; `root` itself where it holds a run.

    Looks into folders, at most five deep, that are neither hidden nor a run. A run that a link leads to is listed once,
    by its own name where it has one below `root`. A folder that cannot be read has no runs.
    """
    found: dict[tuple[int, int], Path] = {}
    links: list[Path] = []
    for folder in _folders(root, links, 0):
        found.setdefault(_identity(folder), folder)
    for link in links:
        with suppress(OSError):  # the link's target vanished
            found.setdefault(_identity(link), link)
    return sorted(found.values(), key=lambda folder: (-last_begun(folder), str(folder)))


def last_begun(folder: Path) -> float:
    """Return when the run in `folder` was begun or resumed last, in seconds since the epoch.

    The lock's time says it, since each session touches that; without a lock (a copy may lack it) run.json's does.
    """
    paths = RunPaths(folder)
    for path in (paths.lock, paths.run):
        with suppress(OSError):
            return path.stat().st_mtime
    return 0.0


def named_run(folder: Path) -> Path:
    """Return `folder`, or the run to which a link such as `results/latest` leads at this moment."""
    for _ in range(_MAX_DEPTH):
        if not folder.is_symlink():
            break
        folder = Path(os.path.normpath(folder.parent / folder.readlink()))
    return folder


def point_latest(root: Path, run: Path) -> None:
    """Make `root`/latest a relative link to `run`, in one step.

    Leaves alone what is there by that name and is not a link. Does nothing where the file system has no links.
    """
    link = root / LATEST
    if link.exists() and not link.is_symlink():
        return
    temporary = root / f".{LATEST}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    with suppress(OSError):
        try:
            temporary.symlink_to(os.path.relpath(run, root), target_is_directory=True)
            temporary.replace(link)
        finally:
            temporary.unlink(missing_ok=True)


def make_new_folder(folder: Path) -> Path:
    """Make `folder`, or the first of `folder`_2, `folder`_3, ... that does not exist; returns the one that it made.

    Raises:
        OSError: it cannot be made.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    number, wanted = 1, folder
    while True:
        try:
            wanted.mkdir()
        except FileExistsError:
            number += 1
            wanted = folder.with_name(f"{folder.name}_{number}")
        else:
            return wanted


def _folders(folder: Path, links: list[Path], depth: int) -> Iterator[Path]:
    """Yield folders of runs that are reached without a link. Links to runs are put into `links`."""
    if holds_run(folder):
        yield folder
        return
    try:
        with os.scandir(folder) as entries:
            inside = [entry for entry in entries if not entry.name.startswith(".") and entry.is_dir()]
    except OSError:
        return
    for entry in inside:
        if not entry.is_symlink():
            if depth < _MAX_DEPTH:
                yield from _folders(Path(entry), links, depth + 1)
        elif holds_run(Path(entry)):
            links.append(Path(entry))


def _identity(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino
