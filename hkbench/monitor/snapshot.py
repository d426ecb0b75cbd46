"""The state of a run as one JSON object, for scripts (`monitor.py --json`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from hkbench.monitor.devices import DeviceNow, devices_now
from hkbench.monitor.reading import Reading
from hkbench.monitor.state import RUNNING, Phase, ProblemState, RunState
from hkbench.records import Backend, DeviceKind, FailureKind, Record, SampleKey, Stage, Status
from hkbench.store.plain import strip_escapes


class UnderWay(Record):
    """A sample between its model call and its verdict."""

    key: SampleKey
    phase: Phase
    stage: Stage | None  #: while it is evaluated
    seconds: float  #: since it came there


class ProblemNow(Record):
    """One problem of the plan."""

    name: str
    category: str | None  #: that the strategy chose, else the first prompt's template; `None` before both
    state: Literal["waiting", "running", "finished", "ended early"]
    solved: bool
    best: float | None  #: the highest speed-up of a correct sample
    judged: int
    statuses: dict[Status, int]
    failures: dict[FailureKind, int]


class Snapshot(Record):
    """A run at one moment. Seconds; `None` where it is not known (yet)."""

    schema_version: Literal[1] = 1
    run: str  #: the folder
    time: float  #: since the epoch
    condition: Literal["not begun", "running", "finished", "stopped"]
    reason: str | None  #: why it stopped
    model: str
    backend: Backend
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
    judged: int
    statuses: dict[Status, int]
    failures: dict[FailureKind, int]
    machine_failures: dict[str, int]  #: of the service and the machine, by error
    tokens_input: int | None
    tokens_output: int | None
    cost: float | None  #: money for the model calls whose cost is known; 0 when no model was called
    unpriced_replies: int  #: of model calls, whose cost is not known
    currency: str | None  #: `None`: there is no price
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
) -> Snapshot:
    """The state at `now` (seconds since the epoch); `readings` of devices by index, and why there are none."""
    config = state.config
    return Snapshot(
        run=run,
        time=now,
        condition=_condition(state),
        reason=strip_escapes(state.closed.reason) if state.closed is not None and state.closed.reason else None,
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
        judged=state.judged,
        statuses={status: count for status in Status if (count := state.status_count(status))},
        failures=dict(state.failures.most_common()),
        machine_failures=dict(state.machine_failures.most_common()),
        tokens_input=state.tokens.input,
        tokens_output=state.tokens.output,
        cost=state.spending.cost,
        unpriced_replies=state.spending.unpriced,
        currency=state.spending.currency,
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


def _condition(state: RunState) -> Literal["not begun", "running", "finished", "stopped"]:
    if state.closed is not None:
        return "finished" if state.closed.complete else "stopped"
    return "running" if state.last_event is not None else "not begun"


def _problem(name: str, problem: ProblemState) -> ProblemNow:
    tally = problem.tally
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
        best=problem.best,
        judged=problem.judged,
        statuses=dict(tally.statuses),
        failures=dict(tally.failures),
    )
