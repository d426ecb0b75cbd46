"""Which folder a run goes into."""

from __future__ import annotations

import argparse
import errno
import re
import tempfile
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from pathlib import Path

from hkbench.cli.models import model_name
from hkbench.cli.run_config import Draft
from hkbench.errors import ConfigurationError, InputMissing, UsageError
from hkbench.store.find import RESULTS, holds_run, make_new_folder, runs_below
from hkbench.store.layout import RunPaths
from hkbench.store.lock import is_free
from hkbench.store.progress import describe_folder, is_complete
from hkbench.store.reader import read_run_file
from hkbench.store.recorder import check_same, makes_way, refuse_strangers
from hkbench.store.settings import differences

DEFAULT = RESULTS / "{time}_{model}"


@dataclass(frozen=True)
class Place:
    """A run's folder, before it is made."""

    folder: Path
    is_new: bool  #: each start has a folder of its own: the name says when it was
    root: Path | None  #: the folder of runs whose link `latest` leads to the run; `None`: there is no such folder
    why: str | None = None  #: why a new run is begun though there is one of these settings

    def make(self) -> Path:
        """Make the folder for the run: a new one, with a number behind its name where that is taken, or the one named.

        Raises:
            InputMissing: it cannot be made.
        """
        if not self.is_new:
            return self.folder
        try:
            return make_new_folder(self.folder)
        except OSError as error:
            raise cannot_make(self.folder, error) from None


def describe_place(place: Place, draft: Draft) -> str:
    """Describe in a line the new folder, or what is resumed, how far it has come, and what the command adds."""
    if place.is_new or not holds_run(place.folder):
        return new_run(place.folder, place.why)
    known = read_run_file(RunPaths(place.folder)).config
    if makes_way(RunPaths(place.folder), known, draft.config):
        return describe_folder(place.folder)
    added = differences(known, draft.config, draft.unknown).added
    return "; ".join([describe_folder(place.folder, draft.config), *added])


def new_run(folder: Path, why: str | None) -> str:
    """Return the line for a run that is begun; `why`: the reason where a run with these settings exists."""
    return f"new: {folder}" + (f" ({why})" if why is not None else "")


def check_folder(place: Place) -> None:
    """Find out whether the run's folder can be made, or written where it exists, and leave nothing behind.

    Raises:
        InputMissing: it cannot.
    """
    folder = place.folder.parent if place.is_new else place.folder
    try:
        while not folder.exists():
            folder = folder.parent
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{folder} is not a folder")
        tempfile.TemporaryDirectory(prefix=".", dir=folder).cleanup()
    except OSError as error:
        raise cannot_make(place.folder, error) from None


def find_place(options: argparse.Namespace, draft: Draft, place: Place) -> Place:
    """Decide where the run goes.

    It goes into the folder that is named, else on with an unfinished run of the same settings, else into a new folder.

    Only the newest run of the same settings in the place's folder of runs counts: where that is complete, or with
    --new, another one is begun.

    Raises:
        RunMismatch: the folder that is named holds a run with other settings.
        UsageError: --new with a folder that holds a run, or the run is at work in another process.
        ConfigurationError: the run.json of the folder that is named cannot be read.
    """
    if not place.is_new:
        _check_named(options, draft, place)
        return place
    if options.new or place.root is None:
        return place
    for folder in runs_below(place.root):
        if not _is_same(folder, draft):
            continue
        paths = RunPaths(folder)
        if is_complete(paths):
            return replace(place, why=f"the last run of these settings, {folder}, is complete")
        if is_free(paths.lock) is False:
            raise UsageError(
                f"this command is at work already, in {folder}: watch it with monitor.py {folder}, or begin another "
                "run of the same settings with --new"
            )
        return Place(folder, False, place.root)
    return place


def _check_named(options: argparse.Namespace, draft: Draft, place: Place) -> None:
    paths = RunPaths(place.folder)
    refuse_strangers(paths)
    if not paths.run.is_file():
        return
    if options.new:
        raise UsageError(f"--new begins another run, and {place.folder} holds one: leave out --results, or --new")
    known = read_run_file(paths)
    if not makes_way(paths, known.config, draft.config):
        check_same(known.config, draft.config, place.folder, draft.unknown)


def _is_same(folder: Path, draft: Draft) -> bool:
    try:
        known = read_run_file(RunPaths(folder))
    except (ConfigurationError, InputMissing):  # damaged, or removed in this moment
        return False
    return differences(known.config, draft.config, draft.unknown).none


def place_of(options: argparse.Namespace, now: datetime) -> Place:
    """Return --results with the start of the run (`now`, local time), its model and its strategy in their places.

    Raises:
        UsageError: a name in braces is none of them.
    """
    if options.resume is not None:
        return Place(options.resume, False, _root_of(options.resume))
    pattern = options.results or DEFAULT
    names = {
        "time": now.strftime("%Y%m%d-%H%M%S"),
        "model": re.sub(r"[^\w.-]+", "-", model_name(options)).strip("-.")[:80],
        "strategy": options.strategy,
    }
    try:
        folder = Path(str(pattern).format(**names))
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise UsageError(
            f"--results {pattern}: {error} does not name anything that a folder can be called after; use "
            f"{', '.join(f'{{{name}}}' for name in names)}"
        ) from None
    if "{time}" in str(pattern):
        return Place(folder, True, Path(*takewhile(lambda part: "{" not in part, pattern.parts)))
    return Place(folder, False, _root_of(folder))


def _root_of(folder: Path) -> Path | None:
    return RESULTS if folder.absolute().parent == RESULTS.absolute() else None


def cannot_make(folder: Path, error: OSError) -> InputMissing:
    """Return the error for a folder that cannot be made or written to."""
    return InputMissing(f"cannot make {folder} ({error.strerror or error}): name another folder with --results")
