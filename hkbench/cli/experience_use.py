"""`--experience DB`: a run asks earlier ones. It is added to them at its end, also where it does not ask."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hkbench.errors import HkbenchError, UsageError
from hkbench.experience.ask import Experience
from hkbench.experience.database import Database
from hkbench.experience.facts import Traits, traits
from hkbench.experience.feed import add_run
from hkbench.lab.prompting import Prompter
from hkbench.records import Problem
from hkbench.store.layout import RunPaths
from hkbench.store.reader import sample_folders

OFF = "off"
FILE = "experience.db"  #: in the folder of runs: to which a run is added that names no database


def add_experience(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("experience")
    group.add_argument(
        "--experience",
        metavar="DB|off",
        help="ask this database of earlier runs (kernels, what mended an error, what moves brought), and add the run "
        f"to it at its end; it is made where it is not there (default: ask none, and add the run to {FILE} in the "
        "folder of runs, if its folder is named by hkbench; off: neither ask nor add)",
    )
    group.add_argument(
        "--hold-out",
        metavar="REGEX",
        help="with --experience: recall nothing of problems whose name matches, nor of their equals under another name",
    )


def experience_of(options: argparse.Namespace) -> Path | None:
    """Return the database that the options name; `None`: the run asks none.

    Raises:
        UsageError: --hold-out is no regular expression, or there is nothing to hold out from.
    """
    named = options.experience
    path = None if named in (None, OFF) else Path(named).resolve()
    if options.hold_out is None:
        return path
    if path is None:
        raise UsageError("--hold-out goes with --experience DB: without one nothing is recalled")
    try:
        re.compile(options.hold_out)
    except re.error as error:
        raise UsageError(f"--hold-out {options.hold_out!r} is not a regular expression: {error}; fix it") from None
    return path


@contextmanager
def asked(options: argparse.Namespace) -> Iterator[Experience | None]:
    """Open what the run asks; errors as of `Experience`."""
    path = experience_of(options)
    if path is None:
        yield None
        return
    experience = Experience(path, options.hold_out)
    try:
        yield experience
    finally:
        experience.close()


def fed_to(options: argparse.Namespace, root: Path | None) -> Path | None:
    """Return the database to which the run is added; `root`: the folder of runs, where hkbench names the run's."""
    path = experience_of(options)
    if path is None and options.experience != OFF and root is not None:
        return root / FILE
    return path


async def fed(
    options: argparse.Namespace, run: Path, root: Path | None, prompter: Prompter, problems: Sequence[Problem]
) -> HkbenchError | None:
    """Add the run to an experience (`fed_to`); return why that failed: the run is whole all the same."""
    path = fed_to(options, root)
    if path is None:
        return None
    paths, known = RunPaths(run), dict[str, Traits | None]()
    try:
        for problem in problems:
            if any(sample_folders(paths.problem(problem.name).root)):
                known[problem.name] = traits(await prompter.facts(problem))
        with Database(path, create=True) as database:
            add_run(database, run, known)
    except HkbenchError as error:
        again = f"add it with `hkbench experience add {run} --db {path}`"
        return type(error)(f"the run is whole, and not in its experience: {error}; {again}")
    return None
