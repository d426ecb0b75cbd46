"""What is going on in a run: a fold of its events. Serves the live monitor and the batch's own display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import Self

from hkbench.records import (
    AdviceFailed,
    AdviceReceived,
    AnyEvent,
    AttemptClosed,
    CallKey,
    CallRetried,
    CandidateExtracted,
    Decided,
    DevicePlace,
    EvaluationFailed,
    FailureKind,
    GenerationFailed,
    GenerationStarted,
    Price,
    ProblemClosed,
    ProblemStarted,
    PromptRendered,
    ReplyReceived,
    RunClosed,
    RunConfig,
    RunStarted,
    RunStopping,
    SampleKey,
    Stage,
    StageEntered,
    Status,
    Usage,
    VerdictReached,
)
from hkbench.store.costs import Spending


class Phase(StrEnum):
    """How far a sample is."""

    ASKED = "asked"  #: its model call is in flight
    ANSWERED = "answered"  #: the reply is in, its evaluation has not begun
    EVALUATED = "evaluated"  #: being built, run, compared or timed
    JUDGED = "judged"
    LOST = "lost"  #: the service or the machine failed; tried again on resume


RUNNING = (Phase.ASKED, Phase.ANSWERED, Phase.EVALUATED)


@dataclass(frozen=True, slots=True)
class SampleState:
    """How far one sample is. Times are seconds since the epoch."""

    phase: Phase
    since: float  #: time of the event that led to it
    asked: float | None = None  #: when its model call began
    stage: Stage | None = None  #: while evaluated
    status: Status | None = None  #: when judged
    speedup: float | None = None
    kind: FailureKind | None = None  #: when judged incorrect
    device: int | None = None  #: lent to it at present


@dataclass(frozen=True)
class Tally:
    """What the samples of a problem come to."""

    judged: int
    running: bool
    best: float | None  #: the highest speed-up of a correct sample
    statuses: Counter[Status]
    failures: Counter[FailureKind]
    widest: dict[int, int]  #: attempt -> its highest sample number

    @classmethod
    def of(cls, samples: Mapping[tuple[int, int], SampleState]) -> Self:
        """In one pass."""
        judged, running, best = 0, False, None
        statuses, failures = Counter[Status](), Counter[FailureKind]()
        widest: dict[int, int] = {}
        for (attempt, number), sample in samples.items():
            widest[attempt] = max(widest.get(attempt, 0), number)
            judged += sample.phase is Phase.JUDGED
            running = running or sample.phase in RUNNING
            if sample.status is not None:
                statuses[sample.status] += 1
            if sample.kind is not None:
                failures[sample.kind] += 1
            if sample.speedup is not None:
                best = sample.speedup if best is None else max(best, sample.speedup)
        return cls(judged, running, best, statuses, failures, widest)


@dataclass
class ProblemState:
    samples: dict[tuple[int, int], SampleState] = field(default_factory=dict)  #: by (attempt, sample)
    chosen: dict[int, int] = field(default_factory=dict)  #: attempt -> its best sample, once the attempt is closed
    started: bool = False
    closed: bool = False
    error: str | None = None
    category: str | None = None  #: that the strategy chose, else the first prompt's template; `None` before both
    _tally: Tally | None = None  #: counted when it is asked for: a change of one sample must not cost a look at all

    def put(self, attempt: int, sample: int, state: SampleState) -> None:
        """Replace what is known of a sample."""
        self.samples[attempt, sample] = state
        self._tally = None

    def forget_running(self) -> None:
        """Drop what was under way."""
        self.samples = {key: sample for key, sample in self.samples.items() if sample.phase not in RUNNING}
        self._tally = None

    @property
    def tally(self) -> Tally:
        if self._tally is None:
            self._tally = Tally.of(self.samples)
        return self._tally

    @property
    def solved(self) -> bool:
        return self.tally.statuses[Status.FAST] > 0

    @property
    def compiled(self) -> bool:
        """Whether a sample was built, where nothing is measured."""
        return self.tally.statuses[Status.COMPILED] > 0

    @property
    def best(self) -> float | None:
        """The highest speed-up of a correct sample."""
        return self.tally.best

    @property
    def running(self) -> bool:
        return self.tally.running

    @property
    def judged(self) -> int:
        return self.tally.judged


@dataclass
class Tokens:
    """Tokens of all replies, replayed ones included; `None` while no endpoint has said."""

    input: int | None = None
    output: int | None = None

    def take(self, usage: Usage, sign: int) -> None:
        """Add (`sign` 1) or take away (-1) those of one reply."""
        if usage.input is not None:
            self.input = (self.input or 0) + sign * usage.input
        if usage.output is not None:
            self.output = (self.output or 0) + sign * usage.output


class RunState:
    """The state of one run. Times are seconds since the epoch, as in the events."""

    def __init__(self, config: RunConfig, price: Price | None = None, judge_price: Price | None = None) -> None:
        self.config = config
        self.spending = Spending(price, judge_price)
        self.problems = {name: ProblemState() for name in config.problems}
        self.tokens = Tokens()
        self.machine_failures: Counter[str] = Counter()  #: of the service and the machine, by error
        self.closed: RunClosed | None = None
        self.stopping = False  #: told to end; what is under way may still be waited for
        self.last_event: float | None = None
        self.host: str | None = None  #: of the present session; `None`: the journal does not say
        self.devices: tuple[DevicePlace, ...] = ()
        self.trouble: CallRetried | None = None  #: the last failed try of a call, until the service answers
        self._session: float | None = None  #: when the present session began
        self._earlier = 0.0  #: seconds of the sessions before it
        self._judged_in_session = 0
        self._usage: dict[CallKey, Usage] = {}
        self._changed: set[str] = set()
        self._unjudged: dict[SampleKey, SampleState] = {}

    def apply(self, event: AnyEvent) -> None:
        """Take the next event."""
        match event:
            case CallRetried():
                self.trouble = event
            case RunStarted() | RunClosed() | ReplyReceived() | AdviceReceived() | GenerationFailed() | AdviceFailed():
                self.trouble = None
            case _:
                pass
        match event:
            case RunStarted():
                self._new_session(event.time)
                self.host, self.devices = event.host, event.devices
            case RunStopping():
                self.stopping = True
            case RunClosed():
                self.stopping = False
                self.closed = event
                self._forget_running()
            case ProblemStarted():
                self._problem(event.problem).started = True
            case PromptRendered():
                problem = self._problem(event.problem)
                problem.category = problem.category or PurePath(event.template).stem
            case Decided(what="category"):
                self._problem(event.problem).category = event.choice
            case AttemptClosed():
                if event.best_sample is not None:
                    self._problem(event.problem).chosen[event.attempt] = event.best_sample
            case ProblemClosed():
                problem = self._problem(event.problem)
                problem.closed, problem.error = event.error is None, event.error
            case GenerationStarted():
                self._move(event.key, Phase.ASKED, event.time, asked=event.time)
            case ReplyReceived() | CandidateExtracted():
                if isinstance(event, ReplyReceived):
                    self._count_tokens(event)
                self._move(event.key, Phase.ANSWERED, event.time)
            case AdviceReceived():
                self._count_tokens(event)
            case AdviceFailed():
                self.machine_failures[event.error] += 1
            case StageEntered():
                self._move(event.key, Phase.EVALUATED, event.time, stage=event.stage, device=event.device)
            case GenerationFailed() | EvaluationFailed():
                self.machine_failures[event.error] += 1
                self._move(event.key, Phase.LOST, event.time)
            case VerdictReached():
                self._move(event.key, Phase.JUDGED, event.time, verdict=event)
                self._judged_in_session += 1
            case _:
                pass
        if self._session is None:
            self._session = event.time
        self.last_event = max(self.last_event or event.time, event.time)

    def _new_session(self, time: float) -> None:
        """The time goes on; what a killed session had under way does not."""
        self._earlier = self.elapsed(self.last_event) if self.last_event is not None else 0.0
        self._session, self.last_event = time, time
        self._judged_in_session = 0
        self.closed, self.stopping = None, False
        self._forget_running()

    def _forget_running(self) -> None:
        for name, problem in self.problems.items():
            problem.forget_running()
            self._changed.add(name)
        self._unjudged = {key: sample for key, sample in self._unjudged.items() if sample.phase not in RUNNING}

    def _problem(self, name: str) -> ProblemState:
        """The problem of an event, which changes it."""
        self._changed.add(name)
        return self.problems.setdefault(name, ProblemState())

    def _move(
        self,
        key: SampleKey,
        phase: Phase,
        time: float,
        *,
        asked: float | None = None,
        stage: Stage | None = None,
        device: int | None = None,
        verdict: VerdictReached | None = None,
    ) -> None:
        """A sample has come to `phase`; when it was asked for is kept from before."""
        problem = self._problem(key.problem)
        earlier = problem.samples.get((key.attempt, key.sample))
        if asked is None and earlier is not None:
            asked = earlier.asked
        if verdict is None:
            state = SampleState(phase, time, asked, stage, device=device)
        else:
            correct = verdict.status in (Status.FAST, Status.SLOW)
            failed = verdict.status in (Status.INCORRECT, Status.REFUSED)
            speedup, kind = verdict.speedup if correct else None, verdict.kind if failed else None
            state = SampleState(phase, time, asked, None, verdict.status, speedup, kind)
        problem.put(key.attempt, key.sample, state)
        if phase is Phase.JUDGED:
            self._unjudged.pop(key, None)
        else:
            self._unjudged[key] = state

    def _count_tokens(self, event: ReplyReceived | AdviceReceived) -> None:
        """A reply that is told of twice counts once."""
        self.tokens.take(self._usage.get(event.key, Usage()), -1)
        self.tokens.take(event.usage, 1)
        self._usage[event.key] = event.usage
        self.spending.take(event.key, event.usage, event.replayed)

    def take_changed(self) -> set[str]:
        """The problems that changed since this was last asked."""
        changed, self._changed = self._changed, set()
        return changed

    @property
    def failures(self) -> Counter[FailureKind]:
        """Of candidates, by kind; a sample that was judged again counts once."""
        return sum((problem.tally.failures for problem in self.problems.values()), Counter[FailureKind]())

    def status_count(self, status: Status) -> int:
        return sum(problem.tally.statuses[status] for problem in self.problems.values())

    def in_phase(self, phase: Phase) -> list[tuple[SampleKey, SampleState]]:
        """Samples in a phase before the verdict, the longest there first."""
        places = {name: place for place, name in enumerate(self.problems)}
        found = [(key, sample) for key, sample in self._unjudged.items() if sample.phase is phase]
        return sorted(found, key=lambda item: (item[1].since, places[item[0].problem]))

    @property
    def measured(self) -> dict[int, tuple[SampleKey, SampleState]]:
        """The sample that each device is lent to, by the device's index."""
        return {sample.device: (key, sample) for key, sample in self._unjudged.items() if sample.device is not None}

    @property
    def best(self) -> list[tuple[str, float]]:
        """Problems with a correct sample, the highest speed-up first."""
        found = [(name, problem.best) for name, problem in self.problems.items()]
        return sorted(((name, best) for name, best in found if best is not None), key=lambda item: -item[1])

    @property
    def judged(self) -> int:
        return sum(problem.judged for problem in self.problems.values())

    @property
    def solved(self) -> int:
        return sum(problem.solved for problem in self.problems.values())

    @property
    def compiled(self) -> int:
        return sum(problem.compiled for problem in self.problems.values())

    @property
    def finished(self) -> int:
        """Problems that are done with."""
        return sum(problem.closed for problem in self.problems.values())

    def elapsed(self, now: float | None) -> float:
        """Seconds that the run has been alive, the time between sessions left out."""
        if self._session is None or now is None:
            return 0.0
        end = self.last_event if self.closed is not None and self.last_event is not None else now
        return self._earlier + max(0.0, end - self._session)

    def seconds_left(self, now: float) -> float | None:
        """An estimate: samples still to be judged at this session's pace. `None` before the first verdict.

        A finished problem says how many samples one takes (success ends it early); until one has, all its
        attempts are expected.
        """
        if self.closed is not None or self._session is None or not self._judged_in_session:
            return None
        done = [problem.judged for problem in self.problems.values() if problem.closed and problem.judged]
        most = self.config.attempts * self.config.samples
        expected = sum(done) / len(done) if done else most
        open_ = [problem for problem in self.problems.values() if not problem.closed]
        left = sum(max(expected - problem.judged, 0.0) for problem in open_)
        pace = max(0.0, now - self._session) / self._judged_in_session
        return left * pace

    def per_minute(self, now: float) -> float | None:
        """Samples judged a minute, in this session. `None` before the first verdict."""
        if self._session is None or not self._judged_in_session:
            return None
        end = self.last_event if self.closed is not None and self.last_event is not None else now
        return 60.0 * self._judged_in_session / max(1e-3, end - self._session)

    def progress(self) -> float:
        """The share of the plan that is done, 0..1: finished problems, and of the others the samples judged."""
        most = self.config.attempts * self.config.samples
        done = [1.0 if problem.closed else min(1.0, problem.judged / most) for problem in self.problems.values()]
        return sum(done) / len(done) if done else 0.0
