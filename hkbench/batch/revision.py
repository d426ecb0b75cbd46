"""A copy of a run in which some verdicts are replaced: what judging again and regrading have alike."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hkbench.lab.samples import rank, replaces
from hkbench.records import (
    DevicePlace,
    ProblemClosed,
    RunClosed,
    RunConfig,
    RunStarted,
    SampleKey,
    SlotTimes,
    Verdict,
    VerdictReached,
)
from hkbench.store import figures
from hkbench.store.files import write_atomic
from hkbench.store.layout import RunPaths
from hkbench.store.reader import RunView, read_run_file
from hkbench.store.recorder import Recorder

#: Written anew for the copy, or of no use in it.
_NOT_COPIED = (
    "summary.json",
    "summary.csv",
    "detailed_report.json",
    "detailed_report.txt",
    "samples.csv",
    "usage.csv",
    ".lock",
    ".*.tmp",
)


def copy_run(run: RunView, target: Path, config: RunConfig | None = None) -> RunPaths:
    """Return a copy of the folder without its reports; `target` must not exist, and is there once the copy is whole.

    `config`: the copy's settings, where they are not the run's.
    """
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        shutil.copytree(run.paths.root, part, ignore=shutil.ignore_patterns(*_NOT_COPIED))
        if config is not None and config != run.config:
            now = read_run_file(run.paths).model_copy(update={"config": config})
            write_atomic(RunPaths(part).run, now.model_dump_json(indent=2) + "\n")
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return RunPaths(target)


def pending(run: RunView, target: RunPaths, keys: Sequence[SampleKey]) -> list[SampleKey]:
    """Return those of `keys` whose verdict in the copy still is the run's: what an interrupted command left."""
    return [key for key in keys if _result(run.paths, key).read_bytes() == _result(target, key).read_bytes()]


def _result(paths: RunPaths, key: SampleKey) -> Path:
    return paths.problem(key.problem).sample(key.attempt, key.sample).result


def recorded_verdict(paths: RunPaths, key: SampleKey) -> Verdict:
    """Read the verdict of a sample that has one."""
    return Verdict.model_validate_json(_result(paths, key).read_bytes())


def words(verdict: Verdict) -> str:
    """Return a verdict in a few words: "fast 2.01x", "incorrect, timeout"."""
    if verdict.speedup is not None:
        return f"{verdict.status} {figures.speedup(verdict.speedup.value)}"
    return verdict.status.value if verdict.failure is None else f"{verdict.status}, {verdict.failure.kind}"


def replace_verdict(
    recorder: Recorder, key: SampleKey, verdict: Verdict, before: Verdict, how: str, turns: SlotTimes | None = None
) -> Verdict:
    """Write a verdict over the one before, with a warning that says so; return it as it was written."""
    said = f"{how}; the verdict before: {words(before)}"
    conditions = verdict.conditions.model_copy(update={"warnings": (*verdict.conditions.warnings, said)})
    verdict = verdict.model_copy(update={"conditions": conditions})
    recorder.save_verdict(key, verdict)
    recorder.event(VerdictReached.of(key, verdict, turns))
    return verdict


@dataclass
class Revision:
    """What the journal will say of a copy: `reason` is why it is not complete."""

    reason: str | None = "interrupted"


@contextmanager
def revision(
    run: RunView, recorder: Recorder, keys: Sequence[SampleKey], devices: tuple[DevicePlace, ...] = ()
) -> Iterator[Revision]:
    """Hold a revision open while verdicts of `keys` are replaced in the recorder's folder, a copy of `run`'s.

    `devices`: those that evaluate again, where something does. However this ends, the files of the best samples and the
    end of the journal are put right.
    """
    recorder.event(RunStarted(resumed=True, host=platform.node(), devices=devices))
    found = Revision()
    try:
        yield found
    finally:
        for name in dict.fromkeys(key.problem for key in keys):
            _close(run, recorder, name)
        before = run.state.closed
        complete = found.reason is None and before is not None and before.complete
        recorder.event(RunClosed(complete=complete, reason=found.reason or (before and before.reason)))


def _close(run: RunView, recorder: Recorder, name: str) -> None:
    """Record the best of each attempt and of the problem, by the verdicts that the folder has now."""
    problem = next(one for one in run.problems if one.name == name)
    best: tuple[SampleKey, Verdict] | None = None
    for attempt in problem.attempts:
        judged = [(one.key, recorded_verdict(recorder.paths, one.key)) for one in attempt if one.status is not None]
        if not judged:
            continue
        first = max(judged, key=lambda pair: (rank(pair[1]), -pair[0].sample))
        recorder.close_attempt(*first)
        if best is None or replaces(first[1], best[1]):
            best = first
    assert best is not None, "one of its samples has a verdict"
    recorder.copy_best(best[0])
    if problem.closed:
        recorder.event(ProblemClosed.of(name, best, error=problem.error))
