"""Judges recorded candidates of a run once more, into a copy of its folder."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hkbench.engine import Evaluator
from hkbench.errors import HkbenchError
from hkbench.lab.samples import rank
from hkbench.records import (
    AttemptClosed,
    EvaluationFailed,
    Problem,
    ProblemClosed,
    RunClosed,
    RunStarted,
    SampleKey,
    Stage,
    StageEntered,
    Status,
    Verdict,
    VerdictReached,
)
from hkbench.store.layout import RunPaths
from hkbench.store.reader import RunView
from hkbench.store.recorder import Recorder
from hkbench.store.sample import read_sample

#: Written anew for the copy, or of no use in it.
_NOT_COPIED = ("summary.json", "summary.csv", "detailed_report.json", "detailed_report.txt", ".lock", ".*.tmp")


@dataclass
class Rejudged:
    """What became of the samples: their verdicts before and now, and what the machine failed at."""

    before: dict[SampleKey, Verdict] = field(default_factory=dict)
    now: dict[SampleKey, Verdict] = field(default_factory=dict)
    errors: dict[SampleKey, HkbenchError] = field(default_factory=dict)


def copy_run(run: RunView, target: Path) -> RunPaths:
    """A copy of the folder without its reports; `target` must not exist, and is there once the copy is whole."""
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        shutil.copytree(run.paths.root, part, ignore=shutil.ignore_patterns(*_NOT_COPIED))
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return RunPaths(target)


def pending(run: RunView, target: RunPaths, keys: Sequence[SampleKey]) -> list[SampleKey]:
    """Those of `keys` whose verdict in the copy still is that of the run: what a rerun that was cut has left."""
    return [key for key in keys if _result(run.paths, key).read_bytes() == _result(target, key).read_bytes()]


def _result(paths: RunPaths, key: SampleKey) -> Path:
    return paths.problem(key.problem).sample(key.attempt, key.sample).result


async def rejudge(
    run: RunView,
    recorder: Recorder,
    keys: Sequence[SampleKey],
    problems: Mapping[str, Problem],
    evaluator: Evaluator,
    tell: Callable[[SampleKey, Verdict, Verdict], None],
) -> Rejudged:
    """Judges those of `keys` that are pending in the recorder's folder, a copy of `run`'s.

    Each verdict is on disk when it is reached. A machine's failure ends its sample only, which keeps the verdict that
    it had. `tell` gets each verdict before and now. However this ends, the files of the best samples and the end of the
    journal are put right.
    """
    left = pending(run, recorder.paths, keys)
    found = Rejudged(before={key: _verdict(run.paths, key) for key in left})
    recorder.event(RunStarted(time=time.time(), resumed=True, host=platform.node(), devices=evaluator.places))
    reason: str | None = "interrupted"

    async def one(key: SampleKey) -> None:
        try:
            found.now[key] = await _judge(recorder, key, problems[key.problem], run, evaluator, found.before[key])
        except HkbenchError as error:
            found.errors[key] = error
            name, message = type(error).__name__, str(error)
            recorder.event(EvaluationFailed(time=time.time(), key=key, error=name, message=message))
        else:
            tell(key, found.before[key], found.now[key])

    try:
        async with asyncio.TaskGroup() as group:
            for key in left:
                group.create_task(one(key))
        reason = f"{len(found.errors)} samples could not be judged again" if found.errors else None
    finally:
        for name in dict.fromkeys(key.problem for key in keys):
            _close(run, recorder, name)
        before = run.journal.closed
        complete = reason is None and before is not None and before.complete
        recorder.event(RunClosed(time=time.time(), complete=complete, reason=reason or (before and before.reason)))
    return found


async def _judge(
    recorder: Recorder, key: SampleKey, problem: Problem, run: RunView, evaluator: Evaluator, before: Verdict
) -> Verdict:
    paths = recorder.sample(key)

    def entered(stage: Stage, device: int | None) -> None:
        recorder.event(StageEntered(time=time.time(), key=key, stage=stage, device=device))

    evaluated = await evaluator.evaluate(problem, paths.code, paths.build, run.config.backend, entered)
    assert evaluated.verdict is not None, "no builds alone were asked for"
    verdict = _marked(evaluated.verdict, before)
    recorder.save_verdict(key, verdict)
    failure = verdict.failure
    recorder.event(
        VerdictReached(
            time=time.time(),
            key=key,
            status=verdict.status,
            kind=failure.kind if failure else None,
            stage=failure.stage if failure else None,
            speedup=verdict.speedup.value if verdict.speedup else None,
            seconds=sum(stage.seconds for stage in verdict.stages),
            turns=evaluated.turns,
        )
    )
    return verdict


def _marked(verdict: Verdict, before: Verdict) -> Verdict:
    said = f"judged again; the verdict before: {words(before)}"
    conditions = verdict.conditions.model_copy(update={"warnings": (*verdict.conditions.warnings, said)})
    return verdict.model_copy(update={"conditions": conditions})


def words(verdict: Verdict) -> str:
    """A verdict in a few words: "fast 2.01x", "incorrect, timeout"."""
    if verdict.speedup is not None:
        return f"{verdict.status} {verdict.speedup.value:.2f}x"
    return verdict.status.value if verdict.failure is None else f"{verdict.status}, {verdict.failure.kind}"


def _verdict(paths: RunPaths, key: SampleKey) -> Verdict:
    verdict = read_sample(paths, key).verdict
    assert verdict is not None, "only samples with a verdict are judged again"
    return verdict


def _close(run: RunView, recorder: Recorder, name: str) -> None:
    """The best of each attempt and of the problem, by the verdicts that the folder has now."""
    problem = next(one for one in run.problems if one.name == name)
    best: tuple[SampleKey, Verdict] | None = None
    for attempt in problem.attempts:
        judged = [(one.key, _verdict(recorder.paths, one.key)) for one in attempt if one.verdict is not None]
        if not judged:
            continue
        first = max(judged, key=lambda pair: (rank(pair[1]), -pair[0].sample))
        recorder.copy_best(first[0], "attempt", with_prompt=False)
        recorder.event(
            AttemptClosed(
                time=time.time(),
                problem=name,
                attempt=first[0].attempt,
                best_sample=first[0].sample,
                status=first[1].status,
                speedup=first[1].speedup.value if first[1].speedup else None,
            )
        )
        if best is None or rank(first[1]) > rank(best[1]):
            best = first
    assert best is not None, "one of its samples has a verdict"
    recorder.copy_best(best[0], "best", with_prompt=True)
    if problem.closed:
        speedup = best[1].speedup.value if best[1].speedup else None
        solved = best[1].status is Status.FAST
        recorder.event(
            ProblemClosed(
                time=time.time(), problem=name, solved=solved, best=best[0], speedup=speedup, error=problem.error
            )
        )
