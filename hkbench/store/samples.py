"""How far the samples of a problem are, and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self

from hkbench.records import (
    CORRECT,
    SOLVED,
    AdviceKey,
    AdviceReceived,
    Answered,
    BackendName,
    Decided,
    ExperienceRecalled,
    FailureKind,
    Outcome,
    Ownership,
    ProblemClosed,
    PromptRendered,
    RecallKind,
    ReplyReceived,
    SampleKey,
    SlotTimes,
    Stage,
    Standing,
    Status,
    Verdict,
    VerdictReached,
    best_of,
    problem_outcome,
)

Place = tuple[int, int]  #: of a sample, or of a judge's call, in its problem: attempt and number, from 1


class Phase(StrEnum):
    """How far a sample is."""

    ASKED = "asked"  #: its model call is in flight
    ANSWERED = "answered"  #: the reply is in, its evaluation has not begun
    EVALUATED = "evaluated"  #: being built, run, compared or timed
    JUDGED = "judged"
    LOST = "lost"  #: the service or the machine failed; tried again on resume
    KEPT = "kept"  #: its reply is on disk from a session that ended before the verdict; a resume evaluates it


PREPARING, ON_DISK = "preparing prompt", "reply on disk"
RUNNING = (Phase.ASKED, Phase.ANSWERED, Phase.EVALUATED)


class Activity(StrEnum):
    """What is done with a sample for a while."""

    MODEL = "model"  #: the model writes
    WAIT = "wait"  #: for a build slot or a device
    BUILD = "build"  #: read, built and loaded, on the CPU
    MEASURE = "measure"  #: run, compared and timed, on a device


_ON_DEVICE = (Stage.RUN, Stage.COMPARE, Stage.TIME, Stage.SHAPES)


@dataclass(frozen=True, slots=True)
class SampleState(Standing):
    """How far one sample is. Times are seconds since the epoch."""

    phase: Phase
    since: float  #: time of the event that led to it
    begun: float | None = None  #: when the present session began with it
    stage: Stage | None = None  #: while evaluated
    device: int | None = None  #: lent to it at present
    activities: tuple[tuple[Activity, float], ...] = ()  #: in the present session, each with its beginning
    reply: ReplyReceived | None = None  #: the last one
    verdict: VerdictReached | None = None  #: the last one

    @property
    def status(self) -> Status | None:
        return self.verdict.status if self.verdict is not None else None

    @property
    def gain(self) -> tuple[float, float | None, float | None] | None:
        found = self.verdict
        return (found.speedup, found.low, found.high) if found and self.correct and found.speedup is not None else None

    @property
    def unsettled(self) -> bool:
        return self.verdict is not None and self.verdict.unsettled

    @property
    def findings(self) -> int:
        return self.verdict.findings if self.verdict is not None else 0

    @property
    def lacks_interval(self) -> bool:
        """Tell whether it is correct, and the journal, an older one, says of no interval."""
        return self.gain is not None and self.gain[1] is None

    @property
    def kind(self) -> FailureKind | None:
        """Return why it failed, or was refused."""
        return self.verdict.kind if self.verdict is not None and self.judged and not self.correct else None

    @property
    def own(self) -> float | None:
        """Return the share of the work that its own kernels did; `None`: not known."""
        return self.verdict.own if self.verdict is not None else None

    @property
    def whose(self) -> tuple[Ownership | None, BackendName | None]:
        """Return whose work it is, and in what its kernels are written, as far as the journal says."""
        found = self.verdict
        return (Ownership.known(found.ownership, found.own), found.language) if found is not None else (None, None)

    @property
    def copy_of(self) -> SampleKey | None:
        """Return the sample with the same code whose verdict it has."""
        return self.verdict.copy_of if self.verdict is not None else None

    @property
    def measured(self) -> bool:
        """Tell whether a device has it."""
        return self.device is not None or self.stage in _ON_DEVICE

    def moved(
        self,
        phase: Phase,
        time: float,
        activity: Activity | None = None,
        stage: Stage | None = None,
        device: int | None = None,
        reply: ReplyReceived | None = None,
    ) -> Self:
        """Return the state after an event; `activity` is what is done with it from then on."""
        done = self.activities
        if activity is not None and (not done or done[-1][0] is not activity):
            done = (*done, (activity, time))
        begun = time if self.begun is None else self.begun
        # Not by `replace`, which takes twice as long: a report on a large run comes here a hundred thousand times.
        return type(self)(phase, time, begun, stage, device, done, reply or self.reply, self.verdict)

    def reached(self, verdict: VerdictReached) -> Self:
        """Return the state after its verdict."""
        moved = self.moved(Phase.JUDGED, verdict.time)
        done = _by_turns(self.activities, verdict.turns) if verdict.turns is not None else self.activities
        return replace(moved, verdict=verdict, activities=done)

    def ended(self) -> Self | None:
        """Return the state after the end of the session: replies stay. `None`: nothing of it is left."""
        if self.phase is Phase.ASKED:
            return None
        if self.phase not in RUNNING:
            return self
        return replace(self, phase=Phase.KEPT, begun=None, stage=None, device=None, activities=())


def _by_turns(known: tuple[tuple[Activity, float], ...], turns: SlotTimes) -> tuple[tuple[Activity, float], ...]:
    """Return when it waited and when it was worked on, exactly; events before the verdict do not tell of every wait."""
    exact = [span for span in known if span[0] is Activity.MODEL]
    exact += [(Activity.WAIT, turns.asked), (Activity.BUILD, turns.building), (Activity.WAIT, turns.loaded)]
    if turns.lent is not None:
        exact.append((Activity.MEASURE, turns.lent))
    if turns.returned is not None:
        exact.append((Activity.WAIT, turns.returned))
    return tuple(exact)


def spans(sample: SampleState, now: float) -> list[tuple[Activity, float, float]]:
    """Return what was done with a sample, from when to when; the last lasts until `now` or to its last event."""
    end = now if sample.phase in RUNNING else sample.since
    starts = [start for _, start in sample.activities]
    stops = [*starts[1:], max(end, starts[-1])] if starts else []
    return [(activity, start, stop) for (activity, start), stop in zip(sample.activities, stops, strict=True)]


@dataclass
class Span:
    """Seconds between the first and the last event, summed over sessions: nobody's time is between two of them."""

    earlier: float = 0.0  #: of the sessions before
    first: float | None = None  #: in the present session; `None`: nothing happened in it
    last: float = 0.0

    def see(self, time: float) -> None:
        """Take the time of an event."""
        if self.first is None:
            self.first = self.last = time
        self.last = max(self.last, time)  # a clock that was set back does not take time away

    def close(self) -> None:
        """End the session."""
        self.earlier, self.first = self.until(self.last), None

    def until(self, end: float) -> float:
        """Return the seconds up to `end` of the present session."""
        return self.earlier + (max(0.0, end - self.first) if self.first is not None else 0.0)


@dataclass
class Tokens:
    """Tokens of replies, replayed ones included; `None` while no endpoint has said."""

    input: int | None = None
    output: int | None = None
    both: int | None = None  #: input and output, of the replies that said both

    @classmethod
    def of(cls, found: Iterable[Tokens | Answered]) -> Self:
        """Add up those of replies, or of problems."""
        total = cls()
        for one in found:
            usage = one.usage if isinstance(one, Answered) else one
            both = one.both if isinstance(one, Tokens) else None
            if isinstance(one, Answered) and usage.input is not None and usage.output is not None:
                both = usage.input + usage.output
            total.input = _sum(total.input, usage.input)
            total.output = _sum(total.output, usage.output)
            total.both = _sum(total.both, both)
        return total


def _sum(total: int | None, more: int | None) -> int | None:
    return total if more is None else (total or 0) + more


class Tally:
    """What the samples of a problem come to, counted in one pass."""

    def __init__(self, problem: ProblemState) -> None:
        self.running = False
        self.best: Place | None = None  #: of the correct sample with the highest speed-up
        self.newest_failure: Place | None = None  #: of the failed sample that was judged last
        self.statuses = Counter[Status]()
        self.failures = Counter[FailureKind]()
        self.judged_of = Counter[int]()  #: attempt -> its samples with a verdict
        self.widest: dict[int, int] = {}  #: attempt -> its highest sample number
        samples = dict(sorted(problem.samples.items()))
        for place, sample in samples.items():
            attempt, number = place
            self.widest[attempt] = number
            self.running = self.running or sample.phase in RUNNING
            if sample.status is None:
                continue
            self.judged_of[attempt] += 1
            self.statuses[sample.status] += 1
            if sample.kind is not None:
                self.failures[sample.kind] += 1
                if self.newest_failure is None or sample.since >= samples[self.newest_failure].since:
                    self.newest_failure = place
        best = best_of(samples.values())
        self.best = next((place for place, sample in samples.items() if sample is best), None)
        self.judged = self.judged_of.total()
        self.outcome: Outcome = problem_outcome(samples.values())
        replies = (sample.reply for sample in samples.values() if sample.reply is not None)
        self.tokens = Tokens.of([*replies, *problem.advice.values()])


@dataclass
class ProblemState:
    """One problem of the plan."""

    samples: dict[Place, SampleState] = field(default_factory=dict)
    named: set[Place] = field(default_factory=set)  #: samples that an event tells of, also those that never got a reply
    advice: dict[AdviceKey, AdviceReceived] = field(default_factory=dict)  #: answers on kernels
    #: by (attempt, what, choice); a resumed run says again what it decided before
    decisions: dict[tuple[int, str, str], Decided] = field(default_factory=dict)
    #: by (what, about), what the experience answered first
    recalled: dict[tuple[RecallKind, str], ExperienceRecalled] = field(default_factory=dict)
    prompts: dict[int, PromptRendered] = field(default_factory=dict)  #: by attempt
    #: by attempt, the sample that its prompt tells of, or that its code was made from. An older run does not say: there
    #: it is the best sample of the attempt before, as it was when the prompt was made. Attempts of which neither is
    #: known are left out.
    parents: dict[int, SampleKey] = field(default_factory=dict)
    #: by attempt, the samples that were judged before the next attempt after them was begun. Its beginning fixes what a
    #: strategy decided on: samples that are added to the attempt later count for the result, and change no decision.
    deciding: dict[int, frozenset[int]] = field(default_factory=dict)
    order: dict[Place, int] = field(default_factory=dict)  #: how many samples had a verdict before each that has one
    steps: dict[int, str] = field(default_factory=dict)  #: by attempt, what the strategy calls it; others are left out
    proposed: set[Place] = field(default_factory=set)  #: samples that no model was asked for
    chosen: dict[int, int] = field(default_factory=dict)  #: attempt -> its best sample, once the attempt is closed
    started: bool = False
    end: ProblemClosed | None = None  #: since it was started last
    revised: bool = False  #: a verdict was reached after its end
    category: str | None = None  #: that the strategy chose, else the first prompt's template; `None` before both
    advised: float | None = None  #: since when a judge's answer is waited for
    span: Span | None = None  #: `None`: nothing happened
    _tally: Tally | None = None  #: counted when it is asked for: a change of one sample must not cost a look at all

    def put(self, place: Place, state: SampleState) -> None:
        """Replace what is known of a sample."""
        self.samples[place] = state
        self.changed()

    def changed(self) -> None:
        """Count anew when next asked."""
        self._tally = None

    def begin(self, attempt: int) -> None:
        """Fix what was judged of the attempts before as what the strategy decides on."""
        judged: dict[int, set[int]] = {}
        for (before, number), sample in self.samples.items():
            closed = before in self.chosen and before not in self.deciding  # others may still be under way
            if before < attempt and closed and sample.verdict is not None:
                judged.setdefault(before, set()).add(number)
        self.deciding |= {before: frozenset(numbers) for before, numbers in judged.items()}

    def complete(self, place: Place, verdict: Verdict) -> None:
        """Add to a judged sample what an older journal does not tell: its interval, whose kernels worked, in what."""
        sample = self.samples[place]
        if verdict.speedup is not None and sample.verdict is not None:
            told = VerdictReached.of(sample.verdict.key, verdict, sample.verdict.turns)
            self.put(place, replace(sample, verdict=told))

    def end_session(self) -> None:
        """Forget what was under way; replies stay."""
        ended = {place: sample.ended() for place, sample in self.samples.items()}
        self.samples = {place: sample for place, sample in ended.items() if sample is not None}
        self.advised = None
        self.changed()

    @property
    def tally(self) -> Tally:
        if self._tally is None:
            self._tally = Tally(self)
        return self._tally

    @property
    def closed(self) -> bool:
        """Tell whether the strategy came to its end."""
        return self.end is not None and self.end.error is None

    @property
    def error(self) -> str | None:
        """Return the failure of the machine or the service that ended it early."""
        return self.end.error if self.end is not None else None

    @property
    def open(self) -> bool:
        """Tell whether the run still has work on it, or will."""
        return self.end is None

    @property
    def seconds(self) -> float | None:
        """Return how long something happened to it; `None`: nothing did."""
        return self.span.until(self.span.last) if self.span is not None else None

    @property
    def pending(self) -> str:
        """Return what it waits for while nothing of it is under way; empty otherwise.

        Right after its beginning, and between two attempts, that is its next prompt.
        """
        if not self.started or not self.open or self.running or self.advised is not None:
            return ""
        if any(sample.phase is Phase.KEPT for sample in self.samples.values()):
            return ON_DISK
        prompted = max(self.prompts, default=0)
        return "queued for model" if prompted > max(self.tally.widest, default=0) else PREPARING

    @property
    def solved(self) -> bool:
        return any(self.tally.statuses[status] for status in SOLVED)

    @property
    def compiled(self) -> bool:
        """Tell whether a sample was built, where nothing is measured."""
        return self.tally.statuses[Status.COMPILED] > 0

    @property
    def correct(self) -> bool:
        return self.tally.outcome in CORRECT

    @property
    def outcome(self) -> Outcome:
        """Return the class of its best sample, or of its failures."""
        return self.tally.outcome

    @property
    def best_sample(self) -> SampleState | None:
        """Return the correct sample with the highest speed-up."""
        return self.samples[self.tally.best] if self.tally.best is not None else None

    @property
    def best(self) -> float | None:
        """Return the highest speed-up of a correct sample."""
        return self.best_sample.gain[0] if self.best_sample is not None and self.best_sample.gain else None

    @property
    def newest_failure(self) -> FailureKind | None:
        failed = self.tally.newest_failure
        return self.samples[failed].kind if failed is not None else None

    @property
    def running(self) -> bool:
        return self.tally.running

    @property
    def judged(self) -> int:
        """Return how many samples have a verdict."""
        return self.tally.judged
