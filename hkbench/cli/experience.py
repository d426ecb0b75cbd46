"""hkbench experience: the database of earlier runs, filled, checked and read."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from hkbench.backends import find_backend
from hkbench.cli.arguments import positive
from hkbench.cli.experience_traits import traits_of_problem, traits_of_runs
from hkbench.cli.runs import only_one_of, runs_of
from hkbench.errors import UsageError
from hkbench.experience.ask import Experience, Similar
from hkbench.experience.database import Database
from hkbench.experience.feed import add_run, check
from hkbench.experience.summary import CommonError, ModelUse, Summary, summarise
from hkbench.headline import plural
from hkbench.records import MoveGain, SizeSet
from hkbench.registry import backend_names
from hkbench.report.format import UNKNOWN, money_or_unknown, pairs, percent, ratio, table, wrapped
from hkbench.store.find import holds_run
from hkbench.store.sanitize import strip_escapes

DIFFERS = 1
LIMIT = 10
MIB = 1 << 20

DESCRIPTION = """What earlier runs are worth to later ones (run_batch.py --experience DB).

add RUN...: put runs in, or folders of runs; a run is known by its beginning, so that adding it twice changes nothing,
and one that grew takes its own place. check RUN...: build the experience of these runs anew and compare it with the
file row by row. show: who wrote what, the commonest errors with what mended them, what moves brought. similar FILE: the
problems that are most like this one, by operators, shapes and dtype.

Exit code 0; of check 1 where the file holds anything else than these runs, whole."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=list(ACTIONS), help="what to do")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="run folders; of similar: a problem's file")
    parser.add_argument(
        "--db", type=Path, default=Path("experience.db"), metavar="FILE", help="the file (default: experience.db)"
    )
    parser.add_argument("--backend", choices=backend_names(), help="of show and similar: of runs in this language only")
    parser.add_argument("--model", metavar="NAME", help="of show: of runs of this model only")
    parser.add_argument(
        "--limit", type=positive, default=LIMIT, metavar="N", help=f"of show: errors that are shown (default: {LIMIT})"
    )
    parser.add_argument(
        "--sizes",
        choices=[sizes.value for sizes in SizeSet],
        default=SizeSet.FULL.value,
        help="of similar: which sizes of the problem (default: full)",
    )
    parser.add_argument("--json", action="store_true", help="of check, show and similar: print JSON")


def run(options: argparse.Namespace) -> int:
    """Do what was asked for."""
    return ACTIONS[options.action](options)


def _named(options: argparse.Namespace, what: str) -> list[Path]:
    if not options.paths:
        raise UsageError(f"hkbench experience {options.action} needs {what}: name at least one")
    return list(options.paths)


def _runs(options: argparse.Namespace) -> list[Path]:
    """Return the runs in the folders that are named. Raises InputMissing for a folder without any."""
    found = runs_of(_named(options, "a run folder"))
    return [run if holds_run(run) else only_one_of(run) for run in found]


def _add(options: argparse.Namespace) -> int:
    runs = _runs(options)
    with Database(options.db, create=True) as database:
        known = traits_of_runs(runs, database.known_traits())
        for run, traits in zip(runs, known, strict=True):
            print(strip_escapes(f"{run}: {add_run(database, run, traits)}"))
        found = database.facts()
    print(f"{options.db}: {plural(found.runs, 'run')}, {found.bytes / MIB:.1f} MiB, content {found.digest}")
    return 0


def _check(options: argparse.Namespace) -> int:
    runs = _runs(options)
    with Database(options.db) as database:
        found = check(database, list(zip(runs, traits_of_runs(runs, {}), strict=True)))
    if options.json:
        print(found.model_dump_json(indent=2))
    else:
        for name, why in (
            *((one, "the file holds something else of it: add it again") for one in found.differ),
            *((one, "the file does not hold it: add it") for one in found.missing),
            *((one, "the file holds this run, and its folder was not named") for one in found.unnamed),
        ):
            print(strip_escapes(f"{name}: {why}"))
        print(f"{plural(len(found.same), 'run')} the same, row by row" + ("" if found.proved else "; not all"))
    return 0 if found.proved else DIFFERS


def _show(options: argparse.Namespace) -> int:
    with Database(options.db) as database:
        found = summarise(database, options.backend, options.model, options.limit)
    if options.json:
        print(found.model_dump_json(indent=2))
    else:
        for line in summary_lines(found, str(options.db)):
            print(strip_escapes(line).rstrip())
    return 0


def _similar(options: argparse.Namespace) -> int:
    [path] = _named(options, "a problem's file")[:1]
    if options.backend is not None:
        find_backend(options.backend)
    Database(options.db).close()  # which is not made by being asked
    problem, traits = traits_of_problem(path, SizeSet(options.sizes))
    experience = Experience(options.db)
    found = experience.similar(problem, traits, options.backend)
    experience.close()
    if options.json:
        print(json.dumps([one.model_dump(mode="json") for one in found], indent=2))
    else:
        for line in similar_lines(found):
            print(strip_escapes(line).rstrip())
    return 0


ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {
    "add": _add,
    "check": _check,
    "show": _show,
    "similar": _similar,
}


def summary_lines(found: Summary, name: str) -> list[str]:
    """Return the tables of `show`."""
    facts = found.experience
    lines = pairs([("Experience", f"{name}: {plural(facts.runs, 'run')}, {facts.bytes / MIB:.1f} MiB, {facts.digest}")])
    if not found.models:
        return [*lines, "no sample of such a run is in it"]
    columns: tuple[str, ...] = ("model", "language", "strategy", "runs", "samples", "correct", "not built", "cost")
    lines += ["", *table(columns, [_model_row(one) for one in found.models], range(3, 8))]
    if found.errors:
        lines += ["", "The commonest errors, each with what followed it:"]
        for number, error in enumerate(found.errors, start=1):
            lines += _error_lines(number, error)
    if found.moves:
        columns = ("move, what the kernel waits for", "tried", "failed", "gained", "mean gain")
        lines += ["", *table(columns, [_move_row(one) for one in found.moves], range(1, 5))]
    return lines


def _model_row(one: ModelUse) -> tuple[str, ...]:
    counts = (str(one.runs), str(one.samples), percent(one.correct / one.samples), percent(one.not_built / one.samples))
    return (one.model, one.backend, one.strategy, *counts, money_or_unknown(one.cost, one.currency))


def _error_lines(number: int, error: CommonError) -> list[str]:
    said = f"{error.seen} seen, {error.mended} mended"
    if error.mean_steps is not None:
        said += f" in {error.mean_steps:.1f} attempts on average"
    if error.mean_changed is not None:
        said += f", {error.mean_changed:.0f} lines changed"
    lines = ["", *wrapped(f"{error.text} ({said})", f"{number:>3}. ", "     ")]
    for hint in error.hints:
        lines += wrapped(f"helped {hint.helped} of {hint.tried} ({hint.kind}): {hint.text}", "     - ", "       ")
    return lines


def _move_row(one: MoveGain) -> tuple[str, ...]:
    waits_for = "not known" if one.bottleneck is None else one.bottleneck.value
    return (f"{one.move}, {waits_for}", str(one.tried), str(one.failed), str(one.gained), ratio(one.mean_gain))


def similar_lines(found: tuple[Similar, ...]) -> list[str]:
    """Return the table of `similar`."""
    if not found:
        return ["no problem that is like it has a correct kernel in the experience"]
    rows = [
        (
            one.source.described,
            percent(one.likeness),
            ", ".join(one.classes),
            one.dtype or UNKNOWN,
            one.backend,
            ratio(one.speedup),
        )
        for one in found
    ]
    return table(("kernel", "alike", "operators", "dtype", "language", "speed-up"), rows, (1, 5))
