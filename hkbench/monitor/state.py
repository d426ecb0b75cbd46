"""What is going on in a run: a fold of its events. Serves the live monitor and the batch's own display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from hkbench.records import (
    AnyEvent,
    CandidateExtracted,
    EvaluationFailed,
    FailureKind,
    GenerationFailed,
    GenerationStarted,
    ProblemClosed,
    ProblemStarted,
    ReplyReceived,
    RunClosed,
    RunConfig,
    RunStarted,
    SampleKey,
    Stage,
    StageEntered,
    Status,
    VerdictReached,
)


class Phase(StrEnum):
    """How far a sample is."""

    ASKED = "asked"  #: its model call is in flight
    ANSWERED = "answered"  #: the reply is in, its evaluation has not begun
    EVALUATED = "evaluated"  #: being built, run, compared or timed
    JUDGED = "judged"
    LOST = "lost"  #: the service or the machine failed; tried again on resume


RUNNING = (Phase.ASKED, Phase.ANSWERED, Phase.EVALUATED)


@dataclass
class SampleState:
    phase: Phase
    since: float  #: time of the event that led to it
    stage: Stage | None = None  #: while evaluated
    status: Status | None = None  #: when judged
    speedup: float | None = None
    kind: FailureKind | None = None  #: when judged incorrect


@dataclass
class ProblemState:
    samples: dict[tuple[int, int], SampleState] = field(default_factory=dict)  #: by (attempt, sample)
    started: bool = False
    closed: bool = False
    error: str | None = None

    @property
    def solved(self) -> bool:
        return any(sample.status is Status.FAST for sample in self.samples.values())

    @property
    def best(self) -> float | None:
        """The highest speed-up of a correct sample."""
        known = (sample.speedup for sample in self.samples.values() if sample.speedup is not None)
        return max(known, default=None)

    @property
    def running(self) -> bool:
        return any(sample.phase in RUNNING for sample in self.samples.values())

    @property
    def judged(self) -> int:
        return sum(sample.phase is Phase.JUDGED for sample in self.samples.values())


class RunState:
    """The state of one run. Times are seconds since the epoch, as in the events."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.problems = {name: ProblemState() for name in config.problems}
        self.machine_failures: Counter[str] = Counter()  #: of the service and the machine, by error
        self.closed: RunClosed | None = None
        self.last_event: float | None = None
        self._session: float | None = None  #: when the present session began
        self._earlier = 0.0  #: seconds of the sessions before it
        self._judged_in_session = 0

    def apply(self, event: AnyEvent) -> None:
        """Take the next event."""
        match event:
            case RunStarted():
                self._new_session(event.time)
            case RunClosed():
                self.closed = event
            case ProblemStarted():
                self._problem(event.problem).started = True
            case ProblemClosed():
                problem = self._problem(event.problem)
                problem.closed, problem.error = event.error is None, event.error
            case GenerationStarted():
                self._move(event.key, SampleState(Phase.ASKED, event.time))
            case ReplyReceived() | CandidateExtracted():
                self._move(event.key, SampleState(Phase.ANSWERED, event.time))
            case StageEntered():
                self._move(event.key, SampleState(Phase.EVALUATED, event.time, stage=event.stage))
            case GenerationFailed() | EvaluationFailed():
                self.machine_failures[event.error] += 1
                self._move(event.key, SampleState(Phase.LOST, event.time))
            case VerdictReached():
                self._judge(event)
            case _:
                pass
        if self._session is None:
            self._session = event.time
        self.last_event = max(self.last_event or event.time, event.time)

    def _new_session(self, time: float) -> None:
        """What a killed session had under way is not under way any more."""
        self._earlier = self.elapsed(self.last_event) if self.last_event is not None else 0.0
        self._session, self.last_event = time, time
        self._judged_in_session = 0
        self.closed = None
        for problem in self.problems.values():
            for key in [key for key, sample in problem.samples.items() if sample.phase in RUNNING]:
                del problem.samples[key]

    def _problem(self, name: str) -> ProblemState:
        return self.problems.setdefault(name, ProblemState())

    def _move(self, key: SampleKey, state: SampleState) -> None:
        self._problem(key.problem).samples[key.attempt, key.sample] = state

    def _judge(self, event: VerdictReached) -> None:
        correct = event.status in (Status.FAST, Status.SLOW)
        judged = SampleState(
            Phase.JUDGED,
            event.time,
            status=event.status,
            speedup=event.speedup if correct else None,
            kind=event.kind if event.status in (Status.INCORRECT, Status.REFUSED) else None,
        )
        self._move(event.key, judged)
        self._judged_in_session += 1

    @property
    def samples(self) -> Iterator[SampleState]:
        """All samples that were begun."""
        return (sample for problem in self.problems.values() for sample in problem.samples.values())

    @property
    def failures(self) -> Counter[FailureKind]:
        """Of candidates, by kind; a sample that was judged again counts once."""
        return Counter(sample.kind for sample in self.samples if sample.kind is not None)

    def status_count(self, status: Status) -> int:
        return sum(sample.status is status for sample in self.samples)

    def in_phase(self, phase: Phase) -> list[tuple[SampleKey, SampleState]]:
        """Samples in a phase, the longest there first."""
        found = [
            (SampleKey(problem=name, attempt=attempt, sample=number), sample)
            for name, problem in self.problems.items()
            for (attempt, number), sample in problem.samples.items()
            if sample.phase is phase
        ]
        return sorted(found, key=lambda item: item[1].since)

    @property
    def judged(self) -> int:
        return sum(problem.judged for problem in self.problems.values())

    @property
    def solved(self) -> int:
        return sum(problem.solved for problem in self.problems.values())

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
