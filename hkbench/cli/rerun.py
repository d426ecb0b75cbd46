"""hkbench rerun: judge recorded candidates of a run again."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from hkbench.batch.rerun import Rejudged, copy_run, rejudge, words
from hkbench.cli.address import find_problem
from hkbench.engine import Evaluator
from hkbench.errors import InputMissing, RunMismatch, UsageError
from hkbench.problems import find_problems, problems_root
from hkbench.records import FailureKind, Problem, SampleKey, Stage, Status, Verdict
from hkbench.report import write_reports
from hkbench.store.layout import RunPaths
from hkbench.store.reader import RunView, SampleView, read_run
from hkbench.store.recorder import Recorder

DESCRIPTION = """Judge samples of a run again, from their recorded code: no model is called.

RUN stays as it is. NEW becomes a copy of it in which the matching samples have the verdict of today, each with a
warning that says what the verdict was before; reports are written anew. The settings of the judge are those of RUN, and
the device has to be the same. Prompts of later attempts stay what they were. The same command again goes on where an
interrupted one ended."""

#: What --where can ask for, and the values that there are; `None`: any number or name.
_FIELDS: dict[str, frozenset[str] | None] = {
    "status": frozenset(status.value for status in Status),
    "kind": frozenset(kind.value for kind in FailureKind),
    "stage": frozenset(stage.value for stage in Stage),
    "problem": None,
    "attempt": None,
    "sample": None,
}
Conditions = dict[str, frozenset[str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="RUN", help="the run folder, finished or interrupted")
    parser.add_argument(
        "--where",
        action="append",
        required=True,
        metavar="FIELD=VALUE",
        help=f"which samples, as kind=timeout,crash; fields: {', '.join(_FIELDS)}; all of several have to hold",
    )
    parser.add_argument("--results", dest="target", type=Path, metavar="NEW", help="a new folder for the copy")
    parser.add_argument("--problems", type=Path, metavar="DIR", help="folder of problems (default: as run_batch.py)")
    parser.add_argument("--dry-run", action="store_true", help="print the samples and judge nothing")


def run(options: argparse.Namespace) -> int:
    """Prints a line a sample. 0 where all were judged, else the code of the first failure of the machine."""
    view = read_run(RunPaths(options.results))
    keys = matching(view, parse_where(options.where, view.config.problems))
    if not keys:
        raise InputMissing(f"no judged sample of {options.results} with code matches {' '.join(options.where)}")
    if options.dry_run:
        print("\n".join(_name(key) for key in keys))
        return 0
    if options.target is None:
        raise UsageError("name a new folder with --results: the run itself is not changed")
    if view.journal.closed is None:
        raise UsageError(f"{options.results} is under way or was killed; let it end, or resume it first")
    problems = _problems(options, view, {key.problem for key in keys})
    if options.target.exists():
        _check_copy(view, RunPaths(options.target))
    found = asyncio.run(_rejudge(options, view, keys, problems))
    print(f"report: {options.target / 'detailed_report.txt'}")
    for key, error in found.errors.items():
        print(f"{_name(key)}: not judged again: {error}")
    return next(iter(found.errors.values())).exit_code if found.errors else 0


def _check_copy(view: RunView, target: RunPaths) -> None:
    """Raises UsageError unless `target` is a copy that an earlier call made of the run: then it is gone on with."""
    same = target.root.resolve() != view.paths.root.resolve() and target.run.is_file()
    if not same or target.run.read_bytes() != view.paths.run.read_bytes():
        raise UsageError(f"{target.root} is there already, and is no copy of {view.paths.root}; name a new folder")


def parse_where(texts: Sequence[str], names: Sequence[str]) -> Conditions:
    """ "kind=timeout,crash" as the field's name and its values; UsageError for what no sample can have."""
    found: Conditions = {}
    for text in texts:
        field, sign, values = text.partition("=")
        chosen = [value.strip() for value in values.split(",")]
        if field not in _FIELDS or not sign or not all(chosen):
            raise UsageError(f"{text!r} is not FIELD=VALUE with a field of {', '.join(_FIELDS)}")
        if field == "problem":
            chosen = [find_problem(names, value) for value in chosen]
        known = _FIELDS[field]
        unknown = [value for value in chosen if (known is not None and value not in known)]
        if unknown and known is not None:
            raise UsageError(f"{field} is never {unknown[0]!r}; it is one of {', '.join(sorted(known))}")
        if field in {"attempt", "sample"} and not all(value.isdecimal() for value in chosen):
            raise UsageError(f"{text!r}: {field} is a number")
        found[field] = found.get(field, frozenset(chosen)) & frozenset(chosen)
    return found


def matching(view: RunView, where: Conditions) -> list[SampleKey]:
    """Samples with a verdict and with code that meet all of `where`, in order."""
    return [
        sample.key
        for problem in view.problems
        for sample in problem.samples
        if _matches(sample, where)
        and view.paths.problem(problem.name).sample(sample.key.attempt, sample.key.sample).code.is_file()
    ]


def _matches(sample: SampleView, where: Conditions) -> bool:
    if sample.verdict is None:
        return False
    failure = sample.verdict.failure
    values = {
        "status": sample.verdict.status.value,
        "kind": failure.kind.value if failure is not None else "",
        "stage": failure.stage.value if failure is not None else "",
        "problem": sample.key.problem,
        "attempt": str(sample.key.attempt),
        "sample": str(sample.key.sample),
    }
    return all(values[field] in chosen for field, chosen in where.items())


def _problems(options: argparse.Namespace, view: RunView, wanted: set[str]) -> dict[str, Problem]:
    root = problems_root(options.problems, os.environ)
    there = {problem.name: problem for problem in find_problems(root, view.config.level) if problem.name in wanted}
    absent = sorted(wanted - set(there))
    if absent:
        raise InputMissing(f"{root} has no {', '.join(absent)}; name the run's problems with --problems")
    hashes = dict(zip(view.config.problems, view.config.problem_hashes, strict=True))
    changed = sorted(name for name, problem in there.items() if problem.sha256 != hashes[name])
    if changed:
        raise RunMismatch(f"{', '.join(changed)}: the file in {root} is not the run's; name it with --problems")
    return there


async def _rejudge(
    options: argparse.Namespace, view: RunView, keys: Sequence[SampleKey], problems: dict[str, Problem]
) -> Rejudged:
    config = view.config
    async with Evaluator(config.device, config.judge, config.sizes) as evaluator:
        known = view.facts.device
        if known is not None and known.name != evaluator.device.name:
            raise RunMismatch(f"the run was measured on {known.name}, and this is {evaluator.device.name}")
        await evaluator.require(config.backend)
        paths = RunPaths(options.target) if options.target.exists() else copy_run(view, options.target)
        with ExitStack() as stack:
            recorder = Recorder(paths, lambda _: None)
            stack.callback(recorder.close)
            recorder.begin(config, view.facts)
            stack.callback(write_reports, options.target)
            return await rejudge(view, recorder, keys, problems, evaluator, _teller())


def _teller() -> Callable[[SampleKey, Verdict, Verdict], None]:
    def tell(key: SampleKey, before: Verdict, now: Verdict) -> None:
        print(f"{_name(key)}: {words(before)} -> {words(now)}", flush=True)

    return tell


def _name(key: SampleKey) -> str:
    return f"{key.problem}/{key.attempt}/{key.sample}"
