"""What is going on in a run: a fold of its events. Serves the live monitor and the batch's own display."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath

from hkbench.monitor.estimate import samples_left
from hkbench.monitor.samples import PREPARING, Activity, Phase, ProblemState, SampleState
from hkbench.records import (
    AdviceAsked,
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
    Outcome,
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

_SILENCE = 900.0  # seconds: longer than a build, a measurement or an ordinary model call


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
        self.killed = False  #: its process ended without closing the run
        self.alive: bool | None = None  #: whether its process is known to be there; `None`: that cannot be told
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
        self.killed = False
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
                self._end_session()
            case ProblemStarted() | PromptRendered() | Decided() | AttemptClosed() | ProblemClosed():
                self._apply_to_problem(event)
            case AdviceAsked() | AdviceReceived() | AdviceFailed():
                self._apply_to_advice(event)
            case _:
                self._apply_to_sample(event)
        if self._session is None:
            self._session = event.time
        self.last_event = max(self.last_event or event.time, event.time)

    def _apply_to_problem(
        self, event: ProblemStarted | PromptRendered | Decided | AttemptClosed | ProblemClosed
    ) -> None:
        problem = self._problem(event.problem)
        match event:
            case ProblemStarted():
                problem.started, problem.closed, problem.error = True, False, None
            case PromptRendered():
                problem.category = problem.category or PurePath(event.template).stem
                problem.prompted = max(problem.prompted, event.attempt)
            case Decided(what="category"):
                problem.category = event.choice
            case AttemptClosed():
                if event.best_sample is not None:
                    problem.chosen[event.attempt] = event.best_sample
            case ProblemClosed():
                problem.closed, problem.error = event.error is None, event.error
            case _:
                pass

    def _apply_to_advice(self, event: AdviceAsked | AdviceReceived | AdviceFailed) -> None:
        problem = self._problem(event.key.problem)
        problem.advised = event.time if isinstance(event, AdviceAsked) else None
        if isinstance(event, AdviceReceived):
            self._count_tokens(event)
        elif isinstance(event, AdviceFailed):
            self.machine_failures[event.error] += 1

    def _apply_to_sample(self, event: AnyEvent) -> None:
        match event:
            case GenerationStarted():
                self._move(event.key, Phase.ASKED, event.time, Activity.MODEL)
            case ReplyReceived() | CandidateExtracted():
                if isinstance(event, ReplyReceived):
                    self._count_tokens(event)
                self._move(event.key, Phase.ANSWERED, event.time, Activity.WAIT)
            case StageEntered():
                activity = Activity.BUILD if event.device is None else Activity.MEASURE
                self._move(event.key, Phase.EVALUATED, event.time, activity, event.stage, event.device)
            case GenerationFailed() | EvaluationFailed():
                self.machine_failures[event.error] += 1
                self._move(event.key, Phase.LOST, event.time)
            case VerdictReached():
                self._put(event.key, self._sample(event.key, event.time).judged(event))
                self._judged_in_session += 1
            case _:
                pass

    def mark_killed(self) -> None:
        """Its process is gone without a word: nothing is under way any more, and the clock stands."""
        if not self.killed:
            self.killed = True
            self._end_session()

    @property
    def over(self) -> bool:
        """Whether nobody works on it: it was closed or killed."""
        return self.closed is not None or self.killed

    def _new_session(self, time: float) -> None:
        """The time goes on; what a killed session had under way does not."""
        self._earlier = self.elapsed(self.last_event) if self.last_event is not None else 0.0
        self._session, self.last_event = time, time
        self._judged_in_session = 0
        self.closed, self.stopping = None, False
        self._end_session()

    def _end_session(self) -> None:
        for name, problem in self.problems.items():
            problem.end_session()
            self._changed.add(name)
        ended = {key: sample.ended() for key, sample in self._unjudged.items()}
        self._unjudged = {key: sample for key, sample in ended.items() if sample is not None}

    def _problem(self, name: str) -> ProblemState:
        """The problem of an event, which changes it."""
        self._changed.add(name)
        return self.problems.setdefault(name, ProblemState())

    def _sample(self, key: SampleKey, time: float) -> SampleState:
        """What is known of a sample before an event."""
        known = self._problem(key.problem).samples.get((key.attempt, key.sample))
        return known if known is not None else SampleState(Phase.ASKED, time)

    def _put(self, key: SampleKey, state: SampleState) -> None:
        self._problem(key.problem).put(key.attempt, key.sample, state)
        if state.phase is Phase.JUDGED:
            self._unjudged.pop(key, None)
        else:
            self._unjudged[key] = state

    def _move(
        self,
        key: SampleKey,
        phase: Phase,
        time: float,
        activity: Activity | None = None,
        stage: Stage | None = None,
        device: int | None = None,
    ) -> None:
        """A sample has come to `phase`."""
        self._put(key, self._sample(key, time).moved(phase, time, activity, stage=stage, device=device))

    def _count_tokens(self, event: ReplyReceived | AdviceReceived) -> None:
        """A reply that is told of twice counts once."""
        before = self._usage.get(event.key, Usage())
        self.tokens.take(before, -1)
        self.tokens.take(event.usage, 1)
        problem = self._problem(event.key.problem)
        for usage, sign in ((before, -1), (event.usage, 1)):
            if usage.input is not None and usage.output is not None:
                problem.tokens = (problem.tokens or 0) + sign * (usage.input + usage.output)
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
    def outcomes(self) -> Counter[Outcome]:
        """Problems by class."""
        return Counter(problem.outcome for problem in self.problems.values())

    @property
    def preparing(self) -> int:
        """Problems for which a prompt is being made."""
        return 0 if self.over else sum(problem.pending == PREPARING for problem in self.problems.values())

    @property
    def advised(self) -> list[tuple[str, float]]:
        """Problems that wait for a judge's answer, and since when."""
        found = [(name, problem.advised) for name, problem in self.problems.items()]
        return [(name, since) for name, since in found if since is not None]

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

    def _end(self, now: float) -> float:
        """Now, of a run that is over its last event."""
        return self.last_event if self.over and self.last_event is not None else now

    def elapsed(self, now: float | None) -> float:
        """Seconds that the run has been alive, the time between sessions left out."""
        if self._session is None or now is None:
            return 0.0
        return self._earlier + max(0.0, self._end(now) - self._session)

    def pace(self, now: float) -> float | None:
        """Seconds a verdict in this session. `None` before the first one."""
        if self._session is None or not self._judged_in_session:
            return None
        return max(1e-3, self._end(now) - self._session) / self._judged_in_session

    def per_minute(self, now: float) -> float | None:
        """Samples judged a minute, in this session. `None` before the first verdict."""
        pace = self.pace(now)
        return None if pace is None else 60.0 / pace

    def is_silent(self, now: float) -> bool:
        """Whether nothing has happened for so long that the run may be dead, where its process cannot be asked for."""
        silent = self.last_event is not None and now - self.last_event > _SILENCE
        return silent and not self.over and self.alive is not True

    def seconds_left(self, now: float) -> float | None:
        """An estimate; see `estimate.py`.

        `None` where the run is over, ends or may be dead, and before the first verdict of this session.
        """
        pace = None if self.over or self.stopping or self.is_silent(now) else self.pace(now)
        left = samples_left(self.config, self.problems.values()) if pace is not None else 0.0
        return left * pace if pace is not None and left > 0 else None

    def progress(self) -> float:
        """The share of the plan that is done, 0..1: finished problems, and of the others the samples judged."""
        most = self.config.attempts * self.config.samples
        done = [1.0 if problem.closed else min(1.0, problem.judged / most) for problem in self.problems.values()]
        return sum(done) / len(done) if done else 0.0
