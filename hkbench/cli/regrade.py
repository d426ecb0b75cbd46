"""hkbench regrade: recorded verdicts held against other rules."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from hkbench.batch.regrade import decide, rules_of, write_regraded
from hkbench.batch.rerun import evaluate_pending
from hkbench.batch.revision import pending, recorded_verdict, revision, words
from hkbench.cli.recorded import (
    FIELDS,
    add_copy,
    evaluator_of,
    matching,
    name_of,
    new_folder,
    open_copy,
    parse_where,
    print_end,
    problems_of,
    same_device,
    tell,
)
from hkbench.cli.runs import only_one_of
from hkbench.cli.settings import rtol_by_dtype
from hkbench.errors import InputMissing, UsageError
from hkbench.records import Problem, RunConfig, SampleKey, Track, Verdict
from hkbench.regrade.verdicts import Regraded
from hkbench.store.layout import RunPaths
from hkbench.store.reader import RunView, read_run

UNDECIDED = 1  #: exit code: some samples have to be judged again

DESCRIPTION = """Hold recorded verdicts of a run against other rules: no model is called; only --evaluate runs anything.

RUN stays as it is. NEW becomes a copy of it with the verdicts that its records suffice for, by today's static rules,
thresholds and formulas, and the track and tolerances that are asked for. A sample that takes more is listed with the
reason and keeps its verdict; with --evaluate it is evaluated again, on the same device as RUN's. Exit code: 0 all are
decided, 1 some have to be judged again, 64 and above: an error."""

Decided = dict[SampleKey, Regraded]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="RUN", help="the run folder, at its end")
    parser.add_argument("--track", choices=[track.value for track in Track], help="another track than the run's")
    parser.add_argument(
        "--rtol",
        action="append",
        default=[],
        metavar="DTYPE=VALUE",
        help="another tolerance, as float32=1e-5 (docs/method.md says what it bounds)",
    )
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help=f"only these samples, as kind=not_own; fields: {', '.join(FIELDS)}; not with --track or --rtol, which "
        "hold for a whole run",
    )
    add_copy(parser)
    parser.add_argument(
        "--evaluate", "--judge", action="store_true", help="evaluate again what the records do not suffice for"
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would become of each, and write nothing")


def run(options: argparse.Namespace) -> int:
    """Print a line for each sample that has another outcome, and for each that cannot be decided."""
    view = read_run(RunPaths(only_one_of(options.results)))
    if options.where and (options.track or options.rtol):
        raise UsageError("--track and --rtol hold for a whole run: leave out --where")
    config = _config(view.config, options.track, rtol_by_dtype(options.rtol))
    keys = matching(view, parse_where(options.where, view.config.problems))
    if not keys:
        raise InputMissing(f"{options.results} has no judged sample with code that matches")
    target = None if options.dry_run else new_folder(options.target, view, config)
    problems = {}
    if options.evaluate and target is not None:
        problems = problems_of(options.problems, view, {key.problem for key in keys})
    decided = dict(decide(view, keys, rules_of(config.evaluation)))
    if target is None:
        _print_plan(view, decided)
        return UNDECIDED if _again(decided) else 0
    if options.evaluate and _again(decided):
        return asyncio.run(_with_evaluator(target, view, config, decided, problems, _how(options)))
    return _from_records(target, view, config, decided, _how(options))


def _config(config: RunConfig, track: str | None, rtol: dict[str, float]) -> RunConfig:
    """Return the settings of the copy."""
    changed = {"track": Track(track) if track else config.evaluation.track, "rtol": config.evaluation.rtol | rtol}
    return config.model_copy(update={"evaluation": config.evaluation.model_copy(update=changed)})


def _how(options: argparse.Namespace) -> str:
    asked = [*([f"track {options.track}"] if options.track else []), *(f"rtol {text}" for text in options.rtol)]
    return ", ".join(asked) or "today's rules"


def _again(decided: Decided) -> list[SampleKey]:
    return [key for key, one in decided.items() if one.again is not None]


def _print_plan(view: RunView, decided: Decided) -> None:
    for key, one in decided.items():
        if one.verdict is not None:
            _tell_other(key, recorded_verdict(view.paths, key), one.verdict)
    _print_again(view, decided, _again(decided))
    _print_counts(view, decided)


def _tell_other(key: SampleKey, before: Verdict, now: Verdict) -> None:
    if words(before) != words(now):
        tell(key, before, now)


def _print_again(view: RunView, decided: Decided, keys: Sequence[SampleKey]) -> None:
    for key in keys:
        print(f"{name_of(key)}: stays {words(recorded_verdict(view.paths, key))}, has to be judged again: ", end="")
        print(decided[key].again)


def _print_counts(view: RunView, decided: Decided) -> None:
    regraded = {key: one.verdict for key, one in decided.items() if one.verdict is not None}
    other = sum(words(recorded_verdict(view.paths, key)) != words(now) for key, now in regraded.items())
    again = len(_again(decided))
    print(
        f"{len(regraded)} regraded ({other} of them with another outcome), "
        f"{len(decided) - len(regraded) - again} unchanged, {again} that the records cannot decide"
    )


def _from_records(target: Path, view: RunView, config: RunConfig, decided: Decided, how: str) -> int:
    with open_copy(view, target, config) as recorder, revision(view, recorder, list(decided)) as copy:
        write_regraded(view, recorder, decided, how, _tell_other)
        left = pending(view, recorder.paths, _again(decided))
        copy.reason = f"{len(left)} samples have to be judged again (hkbench regrade --evaluate)" if left else None
    _print_again(view, decided, left)
    _print_counts(view, decided)
    print(f"report: {target / 'detailed_report.txt'}")
    return UNDECIDED if left else 0


async def _with_evaluator(
    target: Path, view: RunView, config: RunConfig, decided: Decided, problems: dict[str, Problem], how: str
) -> int:
    async with evaluator_of(config) as evaluator:
        same_device(evaluator, view)
        await evaluator.require(config.backend)
        with (
            open_copy(view, target, config) as recorder,
            revision(view, recorder, list(decided), evaluator.places) as copy,
        ):
            write_regraded(view, recorder, decided, how, _tell_other)
            again = _again(decided)
            found = await evaluate_pending(view, recorder, again, problems, evaluator, tell, copy)
    _print_counts(view, decided)
    return print_end(target, found)
