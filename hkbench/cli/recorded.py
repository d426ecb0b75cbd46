"""Recorded samples of a run, chosen to get other verdicts in a copy of it: what rerun and regrade have alike."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path

from hkbench.batch.rerun import RerunResult
from hkbench.batch.revision import copy_run, words
from hkbench.cli.address import find_problem
from hkbench.compile_only.evaluator import CompileOnlyEvaluator
from hkbench.engine import Evaluator, LocalEvaluator, factory
from hkbench.errors import InputMissing, RunMismatch, UsageError
from hkbench.problems import find_problems, load_problem, problems_root
from hkbench.records import FailureKind, Outcome, Problem, RunConfig, SampleKey, Stage, Status, Verdict
from hkbench.report.write import write_reports
from hkbench.store.layout import RunPaths
from hkbench.store.reader import RunView, SampleView, read_run_file
from hkbench.store.recorder import Recorder

#: What --where can ask for, and the values that there are; `None`: any number or name.
FIELDS: dict[str, frozenset[str] | None] = {
    "outcome": frozenset(outcome.value for outcome in Outcome),
    "status": frozenset(status.value for status in Status),
    "kind": frozenset(kind.value for kind in FailureKind),
    "stage": frozenset(stage.value for stage in Stage),
    "problem": None,
    "attempt": None,
    "sample": None,
}
Conditions = dict[str, frozenset[str]]


def add_copy(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the copy of RUN goes, and where its problems are."""
    parser.add_argument("--results", dest="target", type=Path, metavar="NEW", help="a new folder for the copy")
    parser.add_argument(
        "--problems",
        type=Path,
        metavar="DIR",
        help="folder of problems (default: the files that RUN keeps; without them as hkbench run)",
    )


def parse_where(texts: Sequence[str], names: Sequence[str]) -> Conditions:
    """Parse "kind=timeout,crash" as the field's name and its values; UsageError for what no sample can have."""
    found: Conditions = {}
    for text in texts:
        field, sign, values = text.partition("=")
        chosen = [value.strip() for value in values.split(",")]
        if field not in FIELDS or not sign or not all(chosen):
            raise UsageError(f"{text!r} is not FIELD=VALUE with a field of {', '.join(FIELDS)}")
        if field == "problem":
            chosen = [find_problem(names, value) for value in chosen]
        known = FIELDS[field]
        unknown = [value for value in chosen if (known is not None and value not in known)]
        if unknown and known is not None:
            raise UsageError(f"{field} is never {unknown[0]!r}; it is one of {', '.join(sorted(known))}")
        if field in {"attempt", "sample"} and not all(value.isdecimal() for value in chosen):
            raise UsageError(f"{text!r}: {field} is a number")
        found[field] = found.get(field, frozenset(chosen)) & frozenset(chosen)
    return found


def matching(view: RunView, where: Conditions) -> list[SampleKey]:
    """Return the samples with a verdict and with code that meet all of `where`, in order."""
    return [
        sample.key
        for problem in view.problems
        for sample in problem.samples
        if _matches(sample, where)
        and view.paths.problem(problem.name).sample(sample.key.attempt, sample.key.sample).code.is_file()
    ]


def _matches(sample: SampleView, where: Conditions) -> bool:
    if sample.status is None:
        return False
    failure = sample.failure
    values = {
        "outcome": sample.outcome.value,
        "status": sample.status.value,
        "kind": failure.kind.value if failure is not None else "",
        "stage": failure.stage.value if failure is not None else "",
        "problem": sample.key.problem,
        "attempt": str(sample.key.attempt),
        "sample": str(sample.key.sample),
    }
    return all(values[field] in chosen for field, chosen in where.items())


def new_folder(target: Path | None, view: RunView, config: RunConfig) -> Path:
    """Return the folder for the copy, with settings `config`: a new one, or the one that an earlier call made.

    Raises:
        UsageError: none is named, the run is not at its end, or the folder is something else.
    """
    if target is None:
        raise UsageError("name a new folder with --results: the run itself is not changed")
    if view.state.closed is None:
        raise UsageError(f"{view.paths.root} is under way or was killed; let it end, or resume it first")
    if target.exists():
        same = target.resolve() != view.paths.root.resolve() and RunPaths(target).run.is_file()
        found = read_run_file(RunPaths(target)) if same else None
        if found is None or (found.config, found.facts) != (config, view.facts):
            raise UsageError(
                f"{target} is there already, and is no copy of {view.paths.root} for this; name a new folder"
            )
    return target


def problems_of(folder: Path | None, view: RunView, wanted: set[str]) -> dict[str, Problem]:
    """Return the run's problems by name: those in `folder`, else the run's own copies; a run without them names none.

    Raises:
        InputMissing: a problem is nowhere.
        RunMismatch: its file is not the one that the run was made with.
    """
    hashes = dict(zip(view.config.problems, view.config.problem_hashes, strict=True))
    kept = {} if folder is not None else kept_problems(view.paths, view.config, wanted)
    if len(kept) == len(wanted):
        return kept
    root = problems_root(folder, os.environ)
    there = kept | {one.name: one for one in find_problems(root, view.config.level) if one.name in wanted - set(kept)}
    absent = sorted(wanted - set(there))
    if absent:
        raise InputMissing(f"{root} has no {', '.join(absent)}; name the run's problems with --problems")
    changed = sorted(name for name, problem in there.items() if problem.sha256 != hashes[name])
    if changed:
        raise RunMismatch(f"{', '.join(changed)}: the file in {root} is not the run's; name it with --problems")
    return there


def kept_problems(paths: RunPaths, config: RunConfig, wanted: Iterable[str]) -> dict[str, Problem]:
    """Return those of the problems `wanted` whose file the run folder holds unchanged; an older run holds none."""
    hashes = dict(zip(config.problems, config.problem_hashes, strict=True))
    found = {}
    for name in wanted:
        path = paths.problem(name).reference
        if path.is_file() and sha256(path.read_bytes()).hexdigest() == hashes[name]:
            found[name] = load_problem(path).model_copy(update={"level": config.level})
    return found


def evaluator_of(config: RunConfig) -> LocalEvaluator | CompileOnlyEvaluator:
    """Return who reaches verdicts with a run's settings; not begun yet."""
    if config.compiled_for is not None:
        return CompileOnlyEvaluator(config.backend, config.compiled_for, config.evaluation, config.sizes)
    return factory.local_evaluator(config.device, config.evaluation, config.sizes)


def same_device(evaluator: Evaluator, view: RunView) -> None:
    """Raise RunMismatch where another device would evaluate than the run's."""
    known = view.facts.device
    if known is not None and known.name != evaluator.device.name:
        raise RunMismatch(f"the run was measured on {known.name}, and this is {evaluator.device.name}")


@contextmanager
def open_copy(view: RunView, target: Path, config: RunConfig) -> Iterator[Recorder]:
    """Open the writer of the copy, made first where it is missing; at the end write the copy's reports."""
    paths = RunPaths(target) if target.exists() else copy_run(view, target, config)
    with ExitStack() as stack:
        recorder = Recorder(paths, lambda _: None)
        stack.callback(recorder.close)
        recorder.begin(config, view.facts)
        stack.callback(write_reports, target)
        yield recorder


def tell(key: SampleKey, before: Verdict, now: Verdict) -> None:
    print(f"{name_of(key)}: {words(before)} -> {words(now)}", flush=True)


def print_end(target: Path, found: RerunResult) -> int:
    """Print where the report lies and what was not judged again. Return the code of the first failure, else 0."""
    print(f"report: {target / 'detailed_report.txt'}")
    for key, error in found.errors.items():
        print(f"{name_of(key)}: not judged again: {error}")
    return next(iter(found.errors.values())).exit_code if found.errors else 0


def name_of(key: SampleKey) -> str:
    return f"{key.problem}/{key.attempt}/{key.sample}"
