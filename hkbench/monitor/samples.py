"""How far the samples of a problem are, and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self

from hkbench.records import (
    CORRECT,
    Backend,
    FailureKind,
    Outcome,
    Ownership,
    SampleKey,
    Stage,
    Status,
    Turns,
    Verdict,
    VerdictReached,
    outcome_of,
    problem_outcome,
)


class Phase(StrEnum):
    """How far a sample is."""

    ASKED = "asked"  #: its model call is in flight
    ANSWERED = "answered"  #: the reply is in, its evaluation has not begun
    EVALUATED = "evaluated"  #: being built, run, compared or timed
    JUDGED = "judged"
    LOST = "lost"  #: the service or the machine failed; tried again on resume
    KEPT = "kept"  #: its reply is on disk from a session that ended before the verdict; a resume judges it


PREPARING, ON_DISK = "preparing prompt", "reply on disk"
RUNNING = (Phase.ASKED, Phase.ANSWERED, Phase.EVALUATED)


class Activity(StrEnum):
    """What is done with a sample for a while."""

    MODEL = "model"  #: the model writes
    WAIT = "wait"  #: for a build slot or a device
    BUILD = "build"  #: read, built and loaded, on the CPU
    MEASURE = "measure"  #: run, compared and timed, on a device


_ON_DEVICE = (Stage.RUN, Stage.COMPARE, Stage.TIME)


@dataclass(frozen=True, slots=True)
class SampleState:
    """How far one sample is. Times are seconds since the epoch."""

    phase: Phase
    since: float  #: time of the event that led to it
    begun: float | None = None  #: when the present session began with it
    stage: Stage | None = None  #: while evaluated
    status: Status | None = None  #: when judged
    speedup: float | None = None  #: when judged correct
    low: float | None = None  #: the 95 % interval of the speed-up; `None`: an older run
    high: float | None = None
    own: float | None = None  #: the share of the work that its own kernels did; `None`: not known
    ownership: Ownership | None = None  #: as recorded; `None`: not asked, or an older run
    language: Backend | None = None  #: of its kernels; `None`: not known
    kind: FailureKind | None = None  #: when judged incorrect or refused
    copy_of: SampleKey | None = None  #: the sample with the same code whose verdict it has
    device: int | None = None  #: lent to it at present
    activities: tuple[tuple[Activity, float], ...] = ()  #: in the present session, each with its beginning

    @property
    def outcome(self) -> Outcome:
        return outcome_of(self.status, self.speedup, self.low, self.high)

    @property
    def measured(self) -> bool:
        """Whether a device has it."""
        return self.device is not None or self.stage in _ON_DEVICE

    def moved(
        self,
        phase: Phase,
        time: float,
        activity: Activity | None = None,
        stage: Stage | None = None,
        device: int | None = None,
    ) -> Self:
        """The state after an event; `activity` is what is done with it from then on."""
        done = self.activities
        if activity is not None and (not done or done[-1][0] is not activity):
            done = (*done, (activity, time))
        begun = time if self.begun is None else self.begun
        return replace(self, phase=phase, since=time, begun=begun, stage=stage, device=device, activities=done)

    def judged(self, verdict: VerdictReached) -> Self:
        """The state after its verdict."""
        correct = verdict.status in (Status.FAST, Status.SLOW)
        failed = verdict.status in (Status.INCORRECT, Status.REFUSED)
        moved = self.moved(Phase.JUDGED, verdict.time)
        return replace(
            moved,
            status=verdict.status,
            speedup=verdict.speedup if correct else None,
            low=verdict.low if correct else None,
            high=verdict.high if correct else None,
            own=verdict.own,
            ownership=verdict.ownership,
            language=verdict.language,
            kind=verdict.kind if failed else None,
            copy_of=verdict.copy_of,
            activities=_by_turns(self.activities, verdict.turns) if verdict.turns is not None else self.activities,
        )

    def ended(self) -> Self | None:
        """The state after the end of the session: replies stay, and nothing is under way. `None`: nothing is left."""
        if self.phase is Phase.ASKED:
            return None
        if self.phase not in RUNNING:
            return self
        return replace(self, phase=Phase.KEPT, begun=None, stage=None, device=None, activities=())


def _by_turns(known: tuple[tuple[Activity, float], ...], turns: Turns) -> tuple[tuple[Activity, float], ...]:
    """When it waited and when it was worked on, exactly; the events before the verdict do not tell of every wait."""
    exact = [span for span in known if span[0] is Activity.MODEL]
    exact += [(Activity.WAIT, turns.asked), (Activity.BUILD, turns.building), (Activity.WAIT, turns.loaded)]
    if turns.lent is not None:
        exact.append((Activity.MEASURE, turns.lent))
    if turns.returned is not None:
        exact.append((Activity.WAIT, turns.returned))
    return tuple(exact)


def spans(sample: SampleState, now: float) -> list[tuple[Activity, float, float]]:
    """What was done with a sample, from when to when; the last goes on until `now` or ended with its last event."""
    end = now if sample.phase in RUNNING else sample.since
    starts = [start for _, start in sample.activities]
    stops = [*starts[1:], max(end, starts[-1])] if starts else []
    return [(activity, start, stop) for (activity, start), stop in zip(sample.activities, stops, strict=True)]


@dataclass(frozen=True)
class Tally:
    """What the samples of a problem come to."""

    judged: int
    running: bool
    best: tuple[int, int] | None  #: the correct sample with the highest speed-up, by (attempt, sample)
    newest_failure: tuple[int, int] | None  #: the failed sample that was judged last
    outcome: Outcome
    statuses: Counter[Status]
    failures: Counter[FailureKind]
    judged_of: Counter[int]  #: attempt -> its samples judged
    widest: dict[int, int]  #: attempt -> its highest sample number

    @classmethod
    def of(cls, samples: Mapping[tuple[int, int], SampleState]) -> Self:
        """In one pass."""
        running, best, failed = False, None, None
        statuses, failures, judged_of = Counter[Status](), Counter[FailureKind](), Counter[int]()
        widest: dict[int, int] = {}
        outcomes = []
        for key, sample in samples.items():
            attempt, number = key
            widest[attempt] = max(widest.get(attempt, 0), number)
            running = running or sample.phase in RUNNING
            if sample.status is None:
                continue
            judged_of[attempt] += 1
            statuses[sample.status] += 1
            outcomes.append((sample.outcome, sample.speedup))
            if sample.kind is not None:
                failures[sample.kind] += 1
                failed = key if failed is None or sample.since >= samples[failed].since else failed
            if sample.speedup is not None:
                best = key if best is None or sample.speedup > (samples[best].speedup or 0.0) else best
        outcome = problem_outcome(outcomes)
        return cls(sum(judged_of.values()), running, best, failed, outcome, statuses, failures, judged_of, widest)


@dataclass
class ProblemState:
    """One problem of the plan."""

    samples: dict[tuple[int, int], SampleState] = field(default_factory=dict)  #: by (attempt, sample)
    chosen: dict[int, int] = field(default_factory=dict)  #: attempt -> its best sample, once the attempt is closed
    started: bool = False
    closed: bool = False
    error: str | None = None
    category: str | None = None  #: that the strategy chose, else the first prompt's template; `None` before both
    advised: float | None = None  #: since when a judge's answer is waited for
    prompted: int = 0  #: the latest attempt with a prompt
    tokens: int | None = None  #: input and output, of the replies that said both; `None` while none has
    _tally: Tally | None = None  #: counted when it is asked for: a change of one sample must not cost a look at all

    def put(self, attempt: int, sample: int, state: SampleState) -> None:
        """Replace what is known of a sample."""
        self.samples[attempt, sample] = state
        self._tally = None

    def complete(self, place: tuple[int, int], verdict: Verdict) -> None:
        """Add to a judged sample what an older journal does not tell: its interval, whose kernels worked, in what."""
        if verdict.speedup is None:
            return
        sample = replace(
            self.samples[place],
            low=verdict.speedup.low,
            high=verdict.speedup.high,
            own=verdict.work.own_share if verdict.work is not None else None,
            ownership=verdict.ownership,
            language=verdict.language.backend if verdict.language is not None else None,
        )
        self.put(*place, sample)

    def end_session(self) -> None:
        """Forget what was under way; replies stay."""
        ended = {key: sample.ended() for key, sample in self.samples.items()}
        self.samples = {key: sample for key, sample in ended.items() if sample is not None}
        self.advised, self._tally = None, None

    @property
    def tally(self) -> Tally:
        if self._tally is None:
            self._tally = Tally.of(self.samples)
        return self._tally

    @property
    def open(self) -> bool:
        """Whether the run still has work on it, or will."""
        return not self.closed and self.error is None

    @property
    def pending(self) -> str:
        """What it waits for while nothing of it is under way; empty otherwise.

        Right after its beginning, and between two attempts, that is its next prompt.
        """
        if not self.started or not self.open or self.running or self.advised is not None:
            return ""
        if any(sample.phase is Phase.KEPT for sample in self.samples.values()):
            return ON_DISK
        return "queued for model" if self.prompted > max(self.tally.widest, default=0) else PREPARING

    @property
    def solved(self) -> bool:
        return self.tally.statuses[Status.FAST] > 0

    @property
    def compiled(self) -> bool:
        """Whether a sample was built, where nothing is measured."""
        return self.tally.statuses[Status.COMPILED] > 0

    @property
    def correct(self) -> bool:
        return self.tally.outcome in CORRECT

    @property
    def outcome(self) -> Outcome:
        """The class of its best sample, or of its failures."""
        return self.tally.outcome

    @property
    def best_sample(self) -> SampleState | None:
        """The correct sample with the highest speed-up."""
        return self.samples[self.tally.best] if self.tally.best is not None else None

    @property
    def best(self) -> float | None:
        """The highest speed-up of a correct sample."""
        return self.best_sample.speedup if self.best_sample is not None else None

    @property
    def newest_failure(self) -> FailureKind | None:
        failed = self.tally.newest_failure
        return self.samples[failed].kind if failed is not None else None

    @property
    def running(self) -> bool:
        return self.tally.running

    @property
    def judged(self) -> int:
        return self.tally.judged
