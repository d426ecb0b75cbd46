"""The state of a run as one JSON object, for scripts (`monitor.py --json`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from hkbench.drivers.base import Reading
from hkbench.monitor.devices import DeviceNow, devices_now
from hkbench.monitor.result import Result
from hkbench.records import BackendName, DeviceKind, FailureKind, Outcome, Record, SampleKey, Stage, Status
from hkbench.store.samples import RUNNING, Phase, ProblemState
from hkbench.store.sanitize import strip_escapes
from hkbench.store.state import RunState

Condition = Literal["not begun", "running", "finished", "stopped", "killed"]


class UnderWay(Record):
    """A sample between its model call and its verdict."""

    key: SampleKey
    phase: Phase
    stage: Stage | None  #: while it is evaluated
    seconds: float  #: since it came there


class Speedup(Record):
    """A speed-up and its 95 % interval; `None`: there is none (of a mean, for want of a second problem)."""

    value: float
    low: float | None
    high: float | None


class ProblemNow(Record):
    """One problem of the plan."""

    name: str
    category: str | None  #: that the strategy chose, else the first prompt's template; `None` before both
    state: Literal["waiting", "running", "finished", "ended early"]
    solved: bool
    outcome: Outcome  #: the class of its best sample, or of its failures
    best: float | None  #: the highest speed-up of a correct sample
    best_interval: tuple[float, float] | None  #: 95 %; `None`: none is correct, or an older run
    best_sample: SampleKey | None
    newest_failure: FailureKind | None
    judged: int
    tokens: int | None  #: input and output, of the replies that said both
    statuses: dict[Status, int]
    failures: dict[FailureKind, int]


class Snapshot(Record):
    """A run at one moment. Seconds; `None` where it is not known (yet)."""

    schema_version: Literal[1] = 1
    run: str  #: the folder
    time: float  #: since the epoch
    condition: Condition
    reason: str | None  #: why it stopped
    resume: str | None  #: the command that resumes it; `None`: it is not over, or finished
    model: str
    backend: BackendName
    device: DeviceKind
    attempts: int
    samples: int  #: of an attempt
    progress: float  #: share of the plan that is done, 0..1
    elapsed: float
    left: float | None  #: an estimate
    last_event: float | None  #: since the epoch
    samples_per_minute: float | None  #: judged, in the present session
    problems_finished: int
    problems_solved: int
    problems_compiled: int = 0  #: with a sample that was built only
    problems_open: int  #: begun and not finished
    outcomes: dict[Outcome, int]  #: problems by class
    fast_1: float | None  #: share of the judged problems with a speed-up above 1
    speedup: Speedup | None  #: geometric mean of the problems' best; `None`: none has a correct sample
    judged: int
    statuses: dict[Status, int]
    failures: dict[FailureKind, int]
    machine_failures: dict[str, int]  #: of the service and the machine, by error
    tokens_input: int | None
    tokens_output: int | None
    cost: float | None  #: money for the model calls whose cost is known; 0 when no model was called
    unpriced_replies: int  #: of model calls, whose cost is not known
    currency: str | None  #: `None`: there is no price
    calls: int  #: model calls that were answered, recorded replies left out
    under_way: tuple[UnderWay, ...]
    host: str | None  #: of the present session; `None`: an older run
    devices: tuple[DeviceNow, ...]  #: of a run that is not over
    devices_note: str | None  #: why their driver was not asked
    problems: tuple[ProblemNow, ...]  #: in the order of the plan
    unreadable_lines: int  #: of the journal


def take_snapshot(
    state: RunState,
    run: str,
    now: float,
    unreadable: int = 0,
    readings: Mapping[int, Reading] | None = None,
    note: str | None = None,
    resume: str | None = None,
) -> Snapshot:
    """Return the state at `now` (seconds since the epoch); `readings` of devices by index, and why there are none.

    `resume` is the command that resumes a run which ended early.
    """
    config, result = state.config, Result.of(state)
    mean = result.mean()
    return Snapshot(
        run=run,
        time=now,
        condition=_condition(state),
        reason=strip_escapes(state.closed.reason) if state.closed is not None and state.closed.reason else None,
        resume=resume if state.over and not (state.closed is not None and state.closed.complete) else None,
        model=config.model,
        backend=config.backend,
        device=config.device,
        attempts=config.attempts,
        samples=config.samples,
        progress=state.progress(),
        elapsed=state.elapsed(now),
        left=state.seconds_left(now),
        last_event=state.last_event,
        samples_per_minute=state.per_minute(now),
        problems_finished=state.finished,
        problems_solved=state.solved,
        problems_compiled=state.compiled,
        problems_open=sum(problem.open and problem.started for problem in state.problems.values()),
        outcomes={outcome: count for outcome in Outcome if (count := result.outcomes.get(outcome, 0))},
        fast_1=result.fast_1,
        speedup=Speedup(value=mean[0], low=mean[1], high=mean[2]) if mean is not None else None,
        judged=state.judged,
        statuses={status: count for status in Status if (count := state.status_count(status))},
        failures=dict(state.failures.most_common()),
        machine_failures=dict(state.errors.most_common()),
        tokens_input=state.tokens.input,
        tokens_output=state.tokens.output,
        cost=state.spending.cost,
        unpriced_replies=state.spending.unpriced,
        currency=state.spending.currency,
        calls=state.spending.calls,
        under_way=tuple(
            UnderWay(key=key, phase=phase, stage=sample.stage, seconds=max(0.0, now - sample.since))
            for phase in RUNNING
            for key, sample in state.in_phase(phase)
        ),
        host=strip_escapes(state.host) if state.host is not None else None,
        devices=devices_now(state, now, readings or {}),
        devices_note=note,
        problems=tuple(_problem(name, problem) for name, problem in state.problems.items()),
        unreadable_lines=unreadable,
    )


def _condition(state: RunState) -> Condition:
    if state.closed is not None:
        return "finished" if state.closed.complete else "stopped"
    if state.killed:
        return "killed"
    return "running" if state.last_event is not None else "not begun"


def _problem(name: str, problem: ProblemState) -> ProblemNow:
    tally = problem.tally
    _, low, high = (problem.best_sample and problem.best_sample.gain) or (None, None, None)
    word: Literal["waiting", "running", "finished", "ended early"] = "running" if problem.started else "waiting"
    if problem.closed:
        word = "finished"
    elif problem.error is not None:
        word = "ended early"
    return ProblemNow(
        name=name,
        category=strip_escapes(problem.category) if problem.category is not None else None,
        state=word,
        solved=problem.solved,
        outcome=problem.outcome,
        best=problem.best,
        best_interval=(low, high) if low is not None and high is not None else None,
        best_sample=SampleKey(problem=name, attempt=tally.best[0], sample=tally.best[1])
        if tally.best is not None
        else None,
        newest_failure=problem.newest_failure,
        judged=problem.judged,
        tokens=tally.tokens.both,
        statuses=dict(tally.statuses),
        failures=dict(tally.failures),
    )
