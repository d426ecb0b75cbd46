"""What a run has come to, event by event: the one place where the events of a journal mean something.

Live views, reports and a resume ask it. Wall time is counted a session at a time: a session begins with a `run_started`
and ends with its last event, so that the hours between a crash and the resume are in nobody's time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath
from typing import Self

from hkbench.records import (
    AdviceAsked,
    AdviceFailed,
    AdviceReceived,
    Answered,
    AnyEvent,
    AttemptClosed,
    CallRetried,
    CandidateExtracted,
    CardFailed,
    CardJoined,
    CardsChecked,
    Decided,
    DevicePlace,
    EvaluationFailed,
    ExperienceRecalled,
    ExtractionRule,
    FailureKind,
    GenerationFailed,
    GenerationStarted,
    MachineFailed,
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
    VerdictReached,
)
from hkbench.store.cards import Cards
from hkbench.store.costs import Spending
from hkbench.store.estimate import samples_left
from hkbench.store.samples import PREPARING, Activity, Phase, ProblemState, SampleState, Span, Tokens

_SILENCE = 900.0  # seconds: longer than a build, a measurement or an ordinary model call


class RunState:
    """The state of one run. Times are seconds since the epoch, as in the events."""

    def __init__(self, config: RunConfig, price: Price | None = None, judge_price: Price | None = None) -> None:
        self.config = config
        self.spending = Spending(price, judge_price)
        self.problems = {name: ProblemState() for name in config.problems}
        self.machine_failures: list[MachineFailed] = []
        self.sessions = 0
        self.closed: RunClosed | None = None  #: how the last session ended; `None`: it runs, or it was killed
        self.stopping = False  #: told to end; what is under way may still be waited for
        self.killed = False  #: its process ended without closing the run
        self.alive: bool | None = None  #: whether its process is known to be there; `None`: that cannot be told
        self.host: str | None = None  #: of the present session; `None`: the journal does not say
        self.devices: tuple[DevicePlace, ...] = ()  #: those that a card of a cluster joins among them
        self.cards = Cards()
        self.trouble: CallRetried | None = None  #: the last failed try of a call, until the service answers
        self._span = Span()
        self._judged_in_session = 0
        self._changed: set[str] = set()
        self._unjudged: dict[tuple[str, int, int], tuple[SampleKey, SampleState]] = {}  #: by problem and place

    @classmethod
    def after(cls, events: Iterable[AnyEvent], config: RunConfig, *prices: Price | None) -> Self:
        """Return the state after `events`; `prices` as `RunState` takes them."""
        state = cls(config, *prices)
        for event in events:
            state.apply(event)
        return state

    def apply(self, event: AnyEvent) -> None:
        """Take the next event."""
        self.killed = False
        match event:  # the most frequent first: pydantic makes a class check that fails slow
            case StageEntered() | ReplyReceived() | CandidateExtracted() | GenerationStarted() | VerdictReached():
                self._apply_to_call(event, self._problem(event.key.problem, event.time))
            case RunStarted():
                self.cards.begin(event, self._span.last)
                self._new_session()
                self.host, self.devices = event.host, event.devices
            case CardJoined() | CardFailed() | CardsChecked():
                self.cards.apply(event)
                if isinstance(event, CardJoined):
                    others = [place for place in self.devices if place.index != event.place.index]
                    self.devices = tuple(sorted((*others, event.place), key=lambda place: place.index))
            case RunStopping():
                self.stopping = True
            case RunClosed():
                self.stopping = False
                self.closed = event
                self._end_session()
            case CallRetried():
                self.trouble = event
            case ExperienceRecalled():
                self._problem(event.problem, event.time).recalled.setdefault((event.what, event.about), event)
            case ProblemStarted() | PromptRendered() | Decided() | AttemptClosed() | ProblemClosed():
                self._apply_to_problem(event, self._problem(event.problem, event.time))
            case _:
                self._apply_to_call(event, self._problem(event.key.problem, event.time))
        if self.trouble and isinstance(event, RunStarted | RunClosed | Answered | GenerationFailed | AdviceFailed):
            self.trouble = None
        self._span.see(event.time)

    def _apply_to_problem(
        self, event: ProblemStarted | PromptRendered | Decided | AttemptClosed | ProblemClosed, problem: ProblemState
    ) -> None:
        match event:
            case ProblemStarted():
                problem.started, problem.end = True, None
            case PromptRendered():
                self._apply_prompt(event, problem)
            case Decided():
                problem.decisions[event.attempt, event.what, event.choice] = event
                if event.what == "category":
                    problem.category = event.choice
            case AttemptClosed():
                if event.best_sample is not None:
                    problem.chosen[event.attempt] = event.best_sample
            case ProblemClosed():
                problem.end, problem.revised = event, False

    def _apply_prompt(self, event: PromptRendered, problem: ProblemState) -> None:
        problem.category = problem.category or PurePath(event.template).stem
        problem.prompts[event.attempt] = event
        before = event.attempt - 1
        if event.parent is not None:
            problem.parents[event.attempt] = event.parent
        elif before in problem.chosen:
            best = SampleKey(problem=event.problem, attempt=before, sample=problem.chosen[before])
            problem.parents[event.attempt] = best
        if event.step is not None:
            problem.steps[event.attempt] = event.step
        problem.begin(event.attempt)

    def _apply_candidate(self, event: CandidateExtracted, problem: ProblemState) -> None:
        self._move(event.key, event.time, Phase.ANSWERED, Activity.WAIT)
        if event.rule is ExtractionRule.PROPOSED:
            attempt = event.key.attempt
            problem.proposed.add((attempt, event.key.sample))
            if event.parent is not None:
                problem.parents[attempt] = event.parent
            if event.step is not None:
                problem.steps[attempt] = event.step
            problem.begin(attempt)

    def _apply_to_call(
        self,
        event: GenerationStarted
        | CandidateExtracted
        | StageEntered
        | VerdictReached
        | AdviceAsked
        | Answered
        | MachineFailed,
        problem: ProblemState,
    ) -> None:
        if isinstance(event.key, SampleKey):
            problem.named.add((event.key.attempt, event.key.sample))
        match event:
            case StageEntered():
                done = Activity.BUILD if event.device is None else Activity.MEASURE
                self._move(event.key, event.time, Phase.EVALUATED, done, event.stage, event.device)
            case CandidateExtracted():
                self._apply_candidate(event, problem)
            case GenerationStarted():
                self._move(event.key, event.time, Phase.ASKED, Activity.MODEL)
            case ReplyReceived():
                self.spending.take(event.key, event.usage, event.replayed)
                self._move(event.key, event.time, Phase.ANSWERED, Activity.WAIT, reply=event)
            case VerdictReached():
                self._put(event.key, self._sample(event.key, event.time).reached(event))
                problem.order.setdefault((event.key.attempt, event.key.sample), len(problem.order))
                self.cards.reach(event)
                self._judged_in_session += 1
                problem.revised = True
            case AdviceAsked():
                problem.advised = event.time
            case AdviceReceived():
                self.spending.take(event.key, event.usage, event.replayed)
                problem.advised = None
                problem.advice[event.key] = event
                problem.changed()
            case AdviceFailed():
                self.machine_failures.append(event)
                problem.advised = None
            case GenerationFailed() | EvaluationFailed():
                self.machine_failures.append(event)
                self._move(event.key, event.time, Phase.LOST)

    def mark_killed(self) -> None:
        """Take note that its process is gone without a word: nothing is under way any more, and the clock stands."""
        if not self.killed:
            self.killed = True
            self._end_session()

    @property
    def over(self) -> bool:
        """Tell whether nobody works on it: it was closed or killed."""
        return self.closed is not None or self.killed

    def _new_session(self) -> None:
        """Let the time continue, and forget what a killed session had under way."""
        self.sessions += 1
        for span in (self._span, *(problem.span for problem in self.problems.values())):
            if span is not None:
                span.close()
        self._judged_in_session = 0
        self.closed, self.stopping = None, False
        self._end_session()

    def _end_session(self) -> None:
        for name, problem in self.problems.items():
            problem.end_session()
            self._changed.add(name)
        ended = [(at, key, sample.ended()) for at, (key, sample) in self._unjudged.items()]
        self._unjudged = {at: (key, sample) for at, key, sample in ended if sample is not None}

    def _problem(self, name: str, time: float) -> ProblemState:
        """Return the problem of an event, which changes it."""
        self._changed.add(name)
        problem = self.problems.get(name)
        if problem is None:
            problem = self.problems[name] = ProblemState()
        if problem.span is None:
            problem.span = Span()
        problem.span.see(time)
        return problem

    def _sample(self, key: SampleKey, time: float) -> SampleState:
        """Return what is known of a sample before an event."""
        known = self.problems[key.problem].samples.get((key.attempt, key.sample))
        return known if known is not None else SampleState(Phase.ASKED, time)

    def _move(
        self,
        key: SampleKey,
        time: float,
        phase: Phase,
        activity: Activity | None = None,
        stage: Stage | None = None,
        device: int | None = None,
        reply: ReplyReceived | None = None,
    ) -> None:
        """Bring a sample to `phase`."""
        self._put(key, self._sample(key, time).moved(phase, time, activity, stage, device, reply))

    def _put(self, key: SampleKey, state: SampleState) -> None:
        place = (key.attempt, key.sample)
        self.problems[key.problem].put(place, state)
        if state.phase is Phase.JUDGED:
            self._unjudged.pop((key.problem, *place), None)
        else:
            self._unjudged[key.problem, *place] = key, state

    def take_changed(self) -> set[str]:
        """Return the problems that changed since this was last asked."""
        changed, self._changed = self._changed, set()
        return changed

    @property
    def failures(self) -> Counter[FailureKind]:
        """Count the failures of candidates by kind; a sample that was judged again counts once."""
        return sum((problem.tally.failures for problem in self.problems.values()), Counter[FailureKind]())

    @property
    def errors(self) -> Counter[str]:
        """Count the failures of the service and the machine by error."""
        return Counter(event.error for event in self.machine_failures)

    @property
    def tokens(self) -> Tokens:
        """Return the tokens of all replies; one that is told of twice counts once."""
        return Tokens.of(problem.tally.tokens for problem in self.problems.values())

    def status_count(self, status: Status) -> int:
        return sum(problem.tally.statuses[status] for problem in self.problems.values())

    def in_phase(self, phase: Phase) -> list[tuple[SampleKey, SampleState]]:
        """Return the samples in a phase before the verdict, the longest there first."""
        places = {name: place for place, name in enumerate(self.problems)}
        found = [(key, sample) for key, sample in self._unjudged.values() if sample.phase is phase]
        return sorted(found, key=lambda item: (item[1].since, places[item[0].problem]))

    @property
    def measured(self) -> dict[int, list[tuple[SampleKey, SampleState]]]:
        """Return the samples that each device is lent to, by the device's index."""
        found: dict[int, list[tuple[SampleKey, SampleState]]] = {}
        for key, sample in self._unjudged.values():
            if sample.device is not None:
                found.setdefault(sample.device, []).append((key, sample))
        return found

    @property
    def outcomes(self) -> Counter[Outcome]:
        """Count the problems by class."""
        return Counter(problem.outcome for problem in self.problems.values())

    @property
    def preparing(self) -> int:
        """Count the problems for which a prompt is being made."""
        return 0 if self.over else sum(problem.pending == PREPARING for problem in self.problems.values())

    @property
    def advised(self) -> list[tuple[str, float]]:
        """Return the problems that wait for a judge's answer, and since when."""
        found = [(name, problem.advised) for name, problem in self.problems.items()]
        return [(name, since) for name, since in found if since is not None]

    @property
    def judged(self) -> int:
        return sum(problem.judged for problem in self.problems.values())

    @property
    def most(self) -> int:
        """Return how many samples are judged or may still be: fewer where problems end before their last attempt."""
        each = self.config.samples * self.config.attempts
        found = self.problems.values()
        return sum(one.judged if one.closed and not one.revised else max(one.judged, each) for one in found)

    @property
    def solved(self) -> int:
        return sum(problem.solved for problem in self.problems.values())

    @property
    def compiled(self) -> int:
        return sum(problem.compiled for problem in self.problems.values())

    @property
    def finished(self) -> int:
        """Count the problems that are done with."""
        return sum(problem.closed for problem in self.problems.values())

    @property
    def last_event(self) -> float | None:
        """Return the time of the last event; `None` before the first one."""
        return self._span.last if self._span.first is not None else None

    @property
    def seconds(self) -> float | None:
        """Return the wall time of all sessions up to the last event; `None` before the first one."""
        return self._span.until(self._span.last) if self._span.first is not None else None

    def _end(self, now: float) -> float:
        """Return now, of a run that is over its last event."""
        return self._span.last if self.over else now

    def elapsed(self, now: float) -> float:
        """Return the seconds that the run has been alive, the time between sessions left out."""
        return self._span.until(self._end(now))

    def pace(self, now: float) -> float | None:
        """Return the seconds a verdict in this session. `None` before the first one."""
        if self._span.first is None or not self._judged_in_session:
            return None
        return max(1e-3, self._end(now) - self._span.first) / self._judged_in_session

    def per_minute(self, now: float) -> float | None:
        """Return the samples judged a minute, in this session. `None` before the first verdict."""
        pace = self.pace(now)
        return None if pace is None else 60.0 / pace

    def is_silent(self, now: float) -> bool:
        """Tell whether nothing has happened for so long that the run may be dead, where its process cannot be asked."""
        silent = self.last_event is not None and now - self.last_event > _SILENCE
        return silent and not self.over and self.alive is not True

    def seconds_left(self, now: float) -> float | None:
        """Return an estimate; see `estimate.py`.

        `None` where the run is over, ends or may be dead, and before the first verdict of this session.
        """
        pace = None if self.over or self.stopping or self.is_silent(now) else self.pace(now)
        left = samples_left(self.config, self.problems.values()) if pace is not None else 0.0
        return left * pace if pace is not None and left > 0 else None

    def progress(self) -> float:
        """Return the share of the plan that is done, 0..1: finished problems, and of the others the samples judged."""
        most = self.config.attempts * self.config.samples
        done = [1.0 if problem.closed else min(1.0, problem.judged / most) for problem in self.problems.values()]
        return sum(done) / len(done) if done else 0.0
