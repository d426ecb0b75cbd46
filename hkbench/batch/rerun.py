"""Evaluate recorded candidates of a run once more, into a copy of its folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hkbench.batch.revision import Revision, pending, recorded_verdict, replace_verdict, revision
from hkbench.engine import Evaluator
from hkbench.errors import HkbenchError, unexpected
from hkbench.records import BackendName, EvaluationFailed, Problem, SampleKey, Stage, StageEntered, Verdict
from hkbench.store.reader import RunView
from hkbench.store.recorder import Recorder

Tell = Callable[[SampleKey, Verdict, Verdict], None]


@dataclass
class RerunResult:
    """What became of the samples: their verdicts now, and what the machine failed at."""

    now: dict[SampleKey, Verdict] = field(default_factory=dict)
    errors: dict[SampleKey, HkbenchError] = field(default_factory=dict)


async def rerun(
    run: RunView,
    recorder: Recorder,
    keys: Sequence[SampleKey],
    problems: Mapping[str, Problem],
    evaluator: Evaluator,
    tell: Tell,
) -> RerunResult:
    """Evaluate those of `keys` that are pending in the recorder's folder, a copy of `run`'s, as its own revision."""
    with revision(run, recorder, keys, evaluator.places) as open_revision:
        return await evaluate_pending(run, recorder, keys, problems, evaluator, tell, open_revision)


async def evaluate_pending(
    run: RunView,
    recorder: Recorder,
    keys: Sequence[SampleKey],
    problems: Mapping[str, Problem],
    evaluator: Evaluator,
    tell: Tell,
    open_revision: Revision,
) -> RerunResult:
    """Evaluate those of `keys` that are pending.

    Each verdict is on disk when it is reached. A machine's failure ends its sample only, which keeps the verdict that
    it had. `tell` gets each verdict before and now.
    """
    found = RerunResult()

    def failed(key: SampleKey, error: HkbenchError) -> None:
        found.errors[key] = error
        recorder.event(EvaluationFailed.of(key, error))

    async def one(key: SampleKey) -> None:
        before = recorded_verdict(run.paths, key)
        try:
            backend = run.config.backend
            found.now[key] = await _evaluate(recorder, key, problems[key.problem], backend, evaluator, before)
        except HkbenchError as error:
            failed(key, error)
        except Exception as error:  # noqa: BLE001 - a task ends: the other samples are judged
            failed(key, unexpected(f"judging {key.problem} {key.attempt}.{key.sample}", error))
        else:
            tell(key, before, found.now[key])

    async with asyncio.TaskGroup() as group:
        for key in pending(run, recorder.paths, keys):
            group.create_task(one(key))
    open_revision.reason = f"{len(found.errors)} samples could not be judged again" if found.errors else None
    return found


async def _evaluate(
    recorder: Recorder, key: SampleKey, problem: Problem, backend: BackendName, evaluator: Evaluator, before: Verdict
) -> Verdict:
    paths = recorder.sample(key)

    def entered(stage: Stage, device: int | None) -> None:
        recorder.event(StageEntered(key=key, stage=stage, device=device))

    evaluated = await evaluator.evaluate(problem, paths.code, paths.build, backend, entered)
    assert evaluated.verdict is not None, "no builds alone were asked for"
    if evaluated.assembly is not None:
        recorder.save_assembly(key, evaluated.assembly)
    return replace_verdict(recorder, key, evaluated.verdict, before, "judged again", evaluated.turns)
