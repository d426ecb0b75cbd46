"""Which folder a run goes into."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hkbench.errors import InputMissing, UsageError
from hkbench.store.find import RESULTS, make_new_folder, point_latest

DEFAULT = RESULTS / "{time}_{model}"


@dataclass(frozen=True)
class Place:
    """A run's folder, before it is made."""

    folder: Path
    is_new: bool  #: each start has a folder of its own: the name says when it was
    root: Path | None  #: the folder of runs whose link `latest` leads to the run; `None`: there is no such folder

    def make(self) -> Path:
        """The folder for the run: a new one, with a number behind its name where that is taken, or the one named.

        Raises:
            InputMissing: it cannot be made.
        """
        if not self.is_new:
            return self.folder
        try:
            return make_new_folder(self.folder)
        except OSError as error:
            raise cannot_make(self.folder, error) from None

    def keep_latest(self, run: Path) -> None:
        if self.root is not None:
            point_latest(self.root, run)


def place_of(options: argparse.Namespace, now: datetime) -> Place:
    """--results with the start of the run (`now`, local time), its model and its strategy in their places.

    Raises:
        UsageError: a name in braces is none of them.
    """
    pattern = options.results or DEFAULT
    names = {
        "time": now.strftime("%Y%m%d-%H%M%S"),
        "model": re.sub(r"[^\w.-]+", "-", options.model or "replay").strip("-.")[:80],
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
        fixed = Path(*(part for part in _before_braces(pattern)))
        return Place(folder, True, fixed)
    is_ours = folder.absolute().parent == RESULTS.absolute()
    return Place(folder, False, RESULTS if is_ours else None)


def cannot_make(folder: Path, error: OSError) -> InputMissing:
    """The error for a folder that cannot be made or written to."""
    return InputMissing(f"cannot make {folder} ({error.strerror or error}): name another folder with --results")


def _before_braces(pattern: Path) -> list[str]:
    parts = list(pattern.parts)
    first = next(index for index, part in enumerate(parts) if "{" in part)
    return parts[:first]
