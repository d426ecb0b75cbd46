"""The events of a run's journal."""

from __future__ import annotations

from time import time as now
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from hkbench.records.advice import AnswerForm, QuestionKind
from hkbench.records.base import BackendName, Record
from hkbench.records.experience import Hint, KernelSource, Pitfall, RecallKind, Remedy
from hkbench.records.failures import FailureKind
from hkbench.records.generation import (
    AdviceKey,
    CallKey,
    Candidate,
    Extraction,
    ExtractionRule,
    Prompt,
    Reply,
    SampleKey,
    Usage,
)
from hkbench.records.moves import MoveGain
from hkbench.records.outcome import SOLVED
from hkbench.records.trust import Ownership
from hkbench.records.verdict import Interval, Stage, Status, Verdict


class Event(Record):
    """Tell what happened at `time`, in seconds since the epoch: a line of journal.jsonl."""

    time: float = Field(default_factory=now)


class DevicePlace(Record):
    """Which of a host's devices one of the run's is, for the monitor, which asks the driver how it does."""

    index: int  #: in the run
    name: str
    uuid: str | None = None  #: as the driver's tools print it: "GPU-..."
    pci: str | None = None  #: "0000:1b:00", domain, bus and device
    host: str | None = None  #: the node of a cluster where it is; `None`: on the host of the run


class RunStarted(Event):
    """A session begins, perhaps on another host than the one before."""

    event: Literal["run_started"] = "run_started"
    resumed: bool
    host: str | None = None  #: `None`: an older run
    devices: tuple[DevicePlace, ...] = ()


class CardJoined(Event):
    """A card of a cluster takes part that did not when the session began."""

    event: Literal["card_joined"] = "card_joined"
    place: DevicePlace


class CardFailed(Event):
    """A card of a cluster failed, never a candidate; its work goes to other ones."""

    event: Literal["card_failed"] = "card_failed"
    place: DevicePlace
    message: str
    left_out: bool  #: it gets no more work


class CardCheck(Record):
    """What one card made of a reference as its own candidate. `None`: it did not come to any times."""

    device: int  #: the card's index in the run
    name: str
    seconds: Interval | None = None  #: median time of the reference
    ratio: Interval | None = None  #: of its two times, which ought to be 1
    message: str | None = None  #: why there are no times


class CardsChecked(Event):
    """Each card of a cluster has judged the same reference against itself (--check-cards)."""

    event: Literal["cards_checked"] = "cards_checked"
    problem: str
    cards: tuple[CardCheck, ...]

    @property
    def spread(self) -> float | None:
        """Return by how much the slowest card is slower than the fastest one: 0.01 is one per cent."""
        known = [card.seconds.value for card in self.cards if card.seconds is not None]
        return max(known) / min(known) - 1.0 if len(known) > 1 else None


class ProblemStarted(Event):
    event: Literal["problem_started"] = "problem_started"
    problem: str


class PromptRendered(Event):
    event: Literal["prompt_rendered"] = "prompt_rendered"
    problem: str
    attempt: int
    template: str
    sha256: str
    parent: SampleKey | None = None  #: the sample that it tells of; `None`: of none, or an older run
    metrics: tuple[str, ...] = ()  #: lines of that sample's profile that a stage, or a judge's question, chose
    step: str | None = None  #: what the attempt is, as the strategy describes it; `None`: just a try, or an older run
    hints: tuple[Hint, ...] = ()  #: that it showed

    @classmethod
    def of(
        cls,
        problem: str,
        attempt: int,
        prompt: Prompt,
        parent: SampleKey | None,
        metrics: tuple[str, ...],
        step: str | None = None,
        hints: tuple[Hint, ...] = (),
    ) -> Self:
        """Tell of the prompt that an attempt begins with."""
        return cls(
            problem=problem,
            attempt=attempt,
            template=prompt.template,
            sha256=prompt.sha256,
            parent=parent,
            metrics=metrics,
            step=step,
            hints=hints,
        )


class GenerationStarted(Event):
    event: Literal["generation_started"] = "generation_started"
    key: SampleKey


class CallRetried(Event):
    """A try of a model call failed in a way that may pass; another one follows."""

    event: Literal["call_retried"] = "call_retried"
    key: CallKey
    cause: str
    tries: int  #: made so far
    wait: float  #: seconds until the next one
    limit: float | None  #: seconds for which an outage is waited out; `None`: it is no outage
    max_tries: int | None  #: of a call whose answers cannot be used; `None`: the time is the limit


class Answered(Event):
    """A model answered a call."""

    key: CallKey
    model: str
    usage: Usage
    seconds: float | None
    tries: int
    replayed: bool
    finish_reason: str | None

    @classmethod
    def of(cls, key: CallKey, reply: Reply, **read: Any) -> Self:
        """Tell of a reply; `read` has the further fields of the event, which say what was found in it."""
        told = reply.model_dump(include={"model", "usage", "seconds", "tries", "replayed", "finish_reason"})
        return cls(key=key, **told, **read)


class ReplyReceived(Answered):
    event: Literal["reply_received"] = "reply_received"
    key: SampleKey


class MachineFailed(Event):
    """The service or the machine failed, never a candidate: a resume tries again."""

    key: CallKey
    error: str
    message: str

    @classmethod
    def of(cls, key: CallKey, error: Exception) -> Self:
        """Tell of an error at a call, or at the evaluation, that `key` names."""
        return cls(key=key, error=type(error).__name__, message=str(error))


class GenerationFailed(MachineFailed):
    """A call of the model failed, not its answer."""

    event: Literal["generation_failed"] = "generation_failed"
    key: SampleKey


class AdviceAsked(Event):
    event: Literal["advice_asked"] = "advice_asked"
    key: AdviceKey
    kind: QuestionKind
    about: SampleKey


class AdviceReceived(Answered):
    """The judge answered, usably or not."""

    event: Literal["advice_received"] = "advice_received"
    key: AdviceKey
    kind: QuestionKind
    about: SampleKey
    form: AnswerForm
    note: str | None  #: what was wrong with it, or what was put right


class AdviceFailed(MachineFailed):
    """A call of the judge failed, not its answer."""

    event: Literal["advice_failed"] = "advice_failed"
    key: AdviceKey


class Decided(Event):
    """What a strategy chose where it could have chosen otherwise. A resumed run says it again."""

    event: Literal["decided"] = "decided"
    problem: str
    attempt: int  #: the first one that it is about
    #: "advice", "category", "rules", "stage", "skip", "left" (a stage, by an exit of rules), "exit", "result" (of a
    #: stage)
    what: str
    choice: str
    why: str
    place: int | None = None  #: of a stage among those of its category, from 1
    places: int | None = None  #: how many stages the category has


class ExperienceRecalled(Event):
    """What the experience answered. A resumed run gets the same answer, although the database may have grown."""

    event: Literal["experience_recalled"] = "experience_recalled"
    problem: str
    what: RecallKind
    about: str  #: digest of the problem's facts, or of the failure; empty of moves and pitfalls
    kernel: KernelSource | None = None  #: its code is the problem's known_kernel.py
    remedies: tuple[Remedy, ...] = ()
    moves: tuple[MoveGain, ...] = ()
    pitfalls: tuple[Pitfall, ...] = ()

    @property
    def found(self) -> bool:
        """Tell whether anything was known."""
        return self.kernel is not None or bool(self.remedies or self.moves or self.pitfalls)


class CandidateExtracted(Event):
    event: Literal["candidate_extracted"] = "candidate_extracted"
    key: SampleKey
    rule: ExtractionRule
    sha256: str | None
    parent: SampleKey | None = None  #: of a proposed one, the sample that it was made from
    step: str | None = None  #: of a proposed one, as of `PromptRendered`

    @classmethod
    def of(
        cls,
        key: SampleKey,
        extraction: Extraction,
        candidate: Candidate | None,
        parent: SampleKey | None = None,
        step: str | None = None,
    ) -> Self:
        """Tell of the code that was found in a reply, that there is none, or that the strategy proposed some."""
        sha256 = candidate.sha256 if candidate is not None else None
        return cls(key=key, rule=extraction.rule, sha256=sha256, parent=parent, step=step)


class StageEntered(Event):
    """The evaluation of a sample has reached a stage (for the monitor)."""

    event: Literal["stage_entered"] = "stage_entered"
    key: SampleKey
    stage: Stage
    device: int | None = None  #: the index of the one that is lent to it; `None`: none is (or an older run)


class SlotTimes(Record):
    """When an evaluation had what it waited for: a build slot, then a device. Seconds since the epoch."""

    asked: float  #: for a verdict
    building: float  #: a build slot was lent
    loaded: float  #: and given back: the candidate is built and imported, or that has failed
    device: int | None = None  #: the index of the one that it had; `None`: it did not come so far, as below
    lent: float | None = None
    returned: float | None = None


class VerdictReached(Event):
    event: Literal["verdict_reached"] = "verdict_reached"
    key: SampleKey
    status: Status
    kind: FailureKind | None
    stage: Stage | None
    speedup: float | None
    low: float | None = None  #: the 95 % interval of the speed-up; `None`: there is none, or an older run
    high: float | None = None
    unsettled: bool = False  #: timed beside other work: none of these can be relied on
    own: float | None = None  #: `Work.own_share`; `None`: not traced, or an older run
    ownership: Ownership | None = None  #: `Verdict.ownership`; `None`: not asked, or an older run
    language: BackendName | None = None  #: of its kernels; `None`: not known, or an older run
    findings: int = 0  #: in the compiler's figures of its kernels
    seconds: float
    turns: SlotTimes | None = None  #: `None`: an older run, or nothing was run (no code, or a verdict reached before)
    copy_of: SampleKey | None = None  #: the sample with the same code whose verdict it is

    @classmethod
    def of(cls, key: SampleKey, verdict: Verdict, turns: SlotTimes | None = None) -> Self:
        """Tell of a verdict on a sample."""
        failure, speedup = verdict.failure, verdict.speedup
        return cls(
            key=key,
            status=verdict.status,
            kind=failure.kind if failure is not None else None,
            stage=failure.stage if failure is not None else None,
            speedup=speedup.value if speedup is not None else None,
            low=speedup.low if speedup is not None else None,
            high=speedup.high if speedup is not None else None,
            unsettled=verdict.unsettled,
            own=verdict.work.own_share if verdict.work is not None else None,
            ownership=verdict.ownership,
            language=verdict.language.backend if verdict.language is not None else None,
            findings=verdict.compiler_findings,
            seconds=sum(stage.seconds for stage in verdict.stages),  # work, without waiting for a turn
            turns=turns,
            copy_of=verdict.copy_of,
        )


class EvaluationFailed(MachineFailed):
    """The machine failed, not the candidate: a resume evaluates the sample again."""

    event: Literal["evaluation_failed"] = "evaluation_failed"
    key: SampleKey


class AttemptClosed(Event):
    event: Literal["attempt_closed"] = "attempt_closed"
    problem: str
    attempt: int
    best_sample: int | None
    status: Status | None
    speedup: float | None

    @classmethod
    def of(cls, best: SampleKey, verdict: Verdict) -> Self:
        """Tell of the end of an attempt, with its best sample."""
        return cls(
            problem=best.problem,
            attempt=best.attempt,
            best_sample=best.sample,
            status=verdict.status,
            speedup=verdict.speedup.value if verdict.speedup is not None else None,
        )


class ProblemClosed(Event):
    event: Literal["problem_closed"] = "problem_closed"
    problem: str
    solved: bool
    compiled: bool = False  #: its best kernel was compiled and, in such a run, not measured: neither solved nor not
    best: SampleKey | None
    speedup: float | None
    category: str | None = None  #: strategy staged: what kind of problem it is
    error: str | None = None  #: a failure of the machine or the service that ended it early

    @classmethod
    def of(
        cls,
        problem: str,
        best: tuple[SampleKey, Verdict] | None,
        category: str | None = None,
        error: str | None = None,
    ) -> Self:
        """Tell of the end of a problem, with its best sample where one was judged."""
        key, verdict = best if best is not None else (None, None)
        status, speedup = (verdict.status, verdict.speedup) if verdict is not None else (None, None)
        return cls(
            problem=problem,
            solved=status in SOLVED,
            compiled=status is Status.COMPILED,
            best=key,
            speedup=speedup.value if speedup is not None else None,
            category=category,
            error=error,
        )


class RunStopping(Event):
    """The run was asked to stop before its plan ends; what is under way may still be waited for."""

    event: Literal["run_stopping"] = "run_stopping"
    reason: str


class RunClosed(Event):
    event: Literal["run_closed"] = "run_closed"
    complete: bool
    reason: str | None = None


AnyEvent = Annotated[
    RunStarted
    | CardJoined
    | CardFailed
    | CardsChecked
    | ProblemStarted
    | PromptRendered
    | GenerationStarted
    | CallRetried
    | ReplyReceived
    | GenerationFailed
    | AdviceAsked
    | AdviceReceived
    | AdviceFailed
    | Decided
    | ExperienceRecalled
    | CandidateExtracted
    | StageEntered
    | VerdictReached
    | EvaluationFailed
    | AttemptClosed
    | ProblemClosed
    | RunStopping
    | RunClosed,
    Field(discriminator="event"),
]
