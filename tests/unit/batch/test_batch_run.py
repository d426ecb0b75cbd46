"""How a batch ends when the service or the machine fails, with the evaluator and the prompts left out."""

from __future__ import annotations

import errno
import platform
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.run_folder import FACTS, correct, run_config

from hkbench.batch import Outcome, run_batch
from hkbench.batch.run import Batch
from hkbench.engine import LocalEvaluator
from hkbench.errors import BudgetReached, InternalError, Interrupted, ModelUnavailable, RunStopped, WorkerLost
from hkbench.lab import Lab, Sample, Stop
from hkbench.lab.prompting import Prompter
from hkbench.llm.client import ModelClient
from hkbench.records import (
    AnyEvent,
    DevicePlace,
    Problem,
    ProblemClosed,
    ProblemStarted,
    RunClosed,
    RunConfig,
    RunStarted,
)
from hkbench.store.layout import RunPaths
from hkbench.store.reader import RunFile
from hkbench.store.recorder import Recorder
from hkbench.strategies import STRATEGIES, Reflect
from hkbench.strategies.reflect import ReflectOptions

Script = Callable[[Lab], None]
NAMES = ("1_A", "2_B")
PLACES = (DevicePlace(index=0, name="a GPU", uuid="GPU-1"),)


def problem(name: str) -> Problem:
    number = int(name.partition("_")[0])
    return Problem(number=number, name=name, level=1, path=Path(name), source="", sha256="0" * 64)


async def played(
    root: Path, monkeypatch: pytest.MonkeyPatch, scripts: dict[str, Script], stop: Stop | None = None
) -> tuple[Outcome, list[AnyEvent]]:
    class Scripted(Reflect):
        async def run(self, lab: Lab, options: ReflectOptions) -> None:
            assert options == Reflect.Options(samples=2, attempts=2, exhaust=False)
            scripts[lab.problem.name](lab)

    monkeypatch.setitem(STRATEGIES, "reflect", Scripted())
    config: RunConfig = run_config(NAMES)
    events: list[AnyEvent] = EVENTS
    events.clear()
    recorder = Recorder(RunPaths(root), events.append)
    try:
        recorder.begin(config, FACTS)
        nothing = cast(Any, None)
        evaluator = cast(LocalEvaluator, SimpleNamespace(places=PLACES))
        parts = (evaluator, cast(ModelClient, nothing), cast(Prompter, nothing))
        batch = Batch(config, recorder, *parts, side_by_side=1, stop=stop)
        return await run_batch(batch, tuple(problem(name) for name in NAMES), resumed=False), events
    finally:
        recorder.close()


EVENTS: list[AnyEvent] = []


def solve(lab: Lab) -> None:
    lab.answered = True
    solved = object.__new__(Sample)
    object.__setattr__(solved, "verdict", correct(lab.problem.name, 2.0))
    object.__setattr__(solved, "key", None)
    lab.best = lab.best_of_all = solved


def fail_with(error: Exception, answered: bool = False) -> Script:
    def script(lab: Lab) -> None:
        lab.answered = answered
        raise error

    return script


def closed() -> RunClosed:
    last = EVENTS[-1]
    assert isinstance(last, RunClosed)
    return last


async def test_a_failing_machine_ends_its_problem_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = WorkerLost("gone")
    outcome, events = await played(tmp_path, monkeypatch, {NAMES[0]: fail_with(error), NAMES[1]: solve})
    assert outcome.errors == {NAMES[0]: error}
    assert not outcome.complete
    assert (outcome.finished, outcome.solved) == (2, 1)
    ends = [event for event in events if isinstance(event, ProblemClosed)]
    assert [(event.problem, event.solved, event.error) for event in ends] == [
        (NAMES[0], False, "WorkerLost: gone"),
        (NAMES[1], True, None),
    ]
    assert not closed().complete


async def test_an_unforeseen_exception_ends_its_problem_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, _ = await played(tmp_path, monkeypatch, {NAMES[0]: fail_with(RecursionError("too deep")), NAMES[1]: solve})
    assert isinstance(outcome.errors[NAMES[0]], InternalError)
    assert (outcome.finished, outcome.solved) == (2, 1)


async def test_a_problem_with_a_sample_that_was_left_out_is_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left_out(lab: Lab) -> None:
        solve(lab)
        lab.failed = InternalError("judging 1_A 1.2")

    outcome, events = await played(tmp_path, monkeypatch, {NAMES[0]: left_out, NAMES[1]: solve})
    assert list(outcome.errors) == [NAMES[0]] and outcome.solved == 2
    ends = [event.error for event in events if isinstance(event, ProblemClosed)]
    assert ends == ["InternalError: judging 1_A 1.2", None]


async def test_a_service_that_never_answered_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the error itself, not in a group."""
    scripts = {NAMES[0]: fail_with(ModelUnavailable("HTTP 401")), NAMES[1]: solve}
    with pytest.raises(ModelUnavailable, match="HTTP 401"):
        await played(tmp_path, monkeypatch, scripts)
    assert closed().reason == "HTTP 401"


async def test_a_service_that_answered_before_ends_one_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = {NAMES[0]: fail_with(ModelUnavailable("too long"), answered=True), NAMES[1]: solve}
    outcome, _ = await played(tmp_path, monkeypatch, scripts)
    assert list(outcome.errors) == [NAMES[0]]
    assert outcome.solved == 1


async def test_a_full_disk_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = {NAMES[0]: fail_with(OSError(errno.ENOSPC, "the disk is full")), NAMES[1]: solve}
    with pytest.raises(OSError, match="the disk is full"):
        await played(tmp_path, monkeypatch, scripts)
    assert not closed().complete


async def test_all_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, events = await played(tmp_path, monkeypatch, dict.fromkeys(NAMES, solve))
    assert outcome.complete and outcome.solved == 2
    assert isinstance(events[0], RunStarted)
    assert (events[0].host, events[0].devices) == (platform.node(), PLACES)
    assert closed().complete


def spent() -> RunStopped:
    return BudgetReached("spent")


async def test_a_run_that_is_told_to_end_leaves_its_problems_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = Stop()

    def script(_: Lab) -> None:
        stop.request(spent)
        stop.check()

    outcome, events = await played(tmp_path, monkeypatch, dict.fromkeys(NAMES, script), stop)
    assert isinstance(outcome.stopped, BudgetReached) and not outcome.complete and not outcome.errors
    assert [event.problem for event in events if isinstance(event, ProblemStarted)] == [NAMES[0]]
    assert not any(isinstance(event, ProblemClosed) for event in events)
    assert closed().reason == "spent"


async def test_a_run_that_came_to_its_end_anyway_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = Stop()

    def last(lab: Lab) -> None:
        stop.request(spent)
        solve(lab)

    outcome, _ = await played(tmp_path, monkeypatch, {NAMES[0]: solve, NAMES[1]: last}, stop)
    assert outcome.complete and closed().complete


async def test_a_problem_with_recorded_prompts_is_looked_at_also_after_a_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its replies may all be there, and want only verdicts. Not after an interrupt."""
    for interrupted in (False, True):
        stop, root = Stop(), tmp_path / str(interrupted)
        if interrupted:
            stop.cancel(lambda: Interrupted("interrupted"))
        else:
            stop.request(spent)
        for name in NAMES:
            (root / name).mkdir(parents=True)
            (root / name / "prompt_1.txt").write_text("write")
        (root / "run.json").write_text(RunFile(config=run_config(NAMES), facts=FACTS).model_dump_json())
        outcome, _ = await played(root, monkeypatch, dict.fromkeys(NAMES, solve), stop)
        assert outcome.complete is not interrupted
        assert closed().reason == ("interrupted" if interrupted else None)
