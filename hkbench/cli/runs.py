"""From what a command is given to the run that is meant: a run's folder, a folder of runs, or nothing at all."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from hkbench.errors import InputMissing, UsageError
from hkbench.shipped import batch_command
from hkbench.store.find import RESULTS, holds_run, named_run, runs_below
from hkbench.store.sanitize import one_line

_SHOWN = 8  #: runs that a message lists before it says how many more there are


def newest_of(named: Path | None) -> Path:
    """Return the run in `named`: itself, else the newest below it; without a name the newest below `results`.

    Which of several it is, and what the others are, goes to standard error.

    Raises:
        InputMissing: there is no run.
    """
    root = named or RESULTS
    if holds_run(root):
        return named_run(root)
    found = _some_below(root, named is not None)
    if len(found) > 1:
        tell(f"{found[0]} is the newest of {len(found)} runs below {root}; the others: {_listed(found[1:])}")
    elif named is None:
        tell(str(found[0]))
    return found[0]


def only_one_of(named: Path) -> Path:
    """Return the run in `named`: itself, else the only one below it.

    Raises:
        InputMissing: there is no run.
        UsageError: there are several; the message lists them.
    """
    if holds_run(named):
        return named_run(named)
    found = _some_below(named, True)
    if len(found) > 1:
        raise UsageError(f"{named} holds {len(found)} runs, name one of them: {_listed(found)}")
    return found[0]


def runs_of(named: Sequence[Path]) -> list[Path]:
    """Return all runs in the folders `named`, newest first in each; without a name the newest below `results`.

    A folder that holds no run, or does not exist, stands for itself: a run may begin there.

    Raises:
        InputMissing: nothing is named, and there is no run below `results`.
    """
    if not named:
        return [newest_of(None)]
    found = ([named_run(folder)] if holds_run(folder) else runs_below(folder) or [folder] for folder in named)
    return list(dict.fromkeys(chain.from_iterable(found)))


def tell(text: str) -> None:
    """Print one line on standard error, where it does not mix with a report or JSON."""
    print(f"hkbench: {one_line(text, 2000)}", file=sys.stderr)


def _some_below(root: Path, named: bool) -> list[Path]:
    found = runs_below(root)
    if found:
        return found
    if not named:
        raise InputMissing(
            f"there is no run below {root} yet: begin one with `{batch_command()}`, or name a run's folder"
        )
    what = "holds no run, and neither does a folder in it" if root.is_dir() else "is not a folder, so it holds no run"
    raise InputMissing(f"{root} {what}: name the folder that a batch printed as its run")


def _listed(folders: Sequence[Path]) -> str:
    more = len(folders) - _SHOWN
    return ", ".join(map(str, folders[:_SHOWN])) + (f" and {more} more" if more > 0 else "")
