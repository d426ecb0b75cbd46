"""The settings of a run, and its journal's events."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field

from hkbench.records.advice import AnswerForm, QuestionKind
from hkbench.records.base import Backend, DeviceKind, FolderName, Record
from hkbench.records.device import DeviceFacts
from hkbench.records.generation import AdviceKey, CallKey, ExtractionRule, SampleKey, Usage
from hkbench.records.money import Price
from hkbench.records.problem import SizeSet
from hkbench.records.trust import IsolationLevel, Ownership, Track
from hkbench.records.verdict import FailureKind, Stage, Status, Verdict


class JudgeSettings(Record):
    """How strictly and how long a candidate is judged."""

    trials: int = 5
    timing_runs: int | None = None  #: of each side and round; `None`: see judge/measure.py
    timing_seconds: float = 30.0  #: no new timed run of a round is begun after this long
    warmups: int = 3
    build_timeout: float = 600.0  #: seconds
    load_timeout: float = 120.0
    run_timeout: float = 60.0  #: of one forward pass
    evaluation_timeout: float = 1200.0  #: of all that is done with the device for one candidate, builds apart
    memory_gib: float | None = None  #: of the runner's process tree; `None`: 80 % of the machine's
    profile_slow: bool = True  #: correct candidates that are slower than the baseline are profiled
    profile_fast: bool = False  #: those that are not, too
    profile_timeout: float = 300.0  #: of all runs of a profiler together; then torch's profiler is used
    keep_profile: str | None = None  #: a folder for what profilers write and print; `None`: it is removed
    track: Track = Track.OWN
    rtol: dict[str, float] = {}  #: by dtype, in place of judge/tolerances.py
    require_isolation: IsolationLevel = IsolationLevel.LIMITS  #: below this level nothing is judged
    stock_builds: bool = False  #: builds go torch's own way, without what the harness prepares for them
    prepare_builds: bool = False  #: at the end, what the builds could have used is made for later ones
    host_copies: bool = False  #: inputs and outputs by host memory, where GPU memory cannot be shared


class RunConfig(Record):
    """What defines a run: the same settings resume it, other ones are refused."""

    schema_version: Literal[1] = 1
    strategy: str = "reflect"
    problems: tuple[FolderName, ...]
    problem_hashes: tuple[str, ...]
    level: int | None
    backend: Backend
    device: DeviceKind
    compiled_for: str | None = None  #: the architecture, where nothing is measured: candidates are compiled for it only
    sizes: SizeSet
    samples: int = 3
    attempts: int = 3
    exhaust: bool = False  #: use every attempt, also after a success
    model: str
    base_url: str | None = None
    api: Literal["chat", "responses"] = "chat"
    temperature: float | None = None
    max_tokens: int | None = None  #: of one reply
    reasoning_effort: str | None = None
    replay: str | None = None
    judge_model: str | None = None  #: `None`: the strategy asks no judge
    from_best: bool = False  #: strategy judge: a round starts from the best kernel so far, not from the last one
    prompts_sha256: str
    categories_sha256: str | None = None  #: `None`: the strategy needs none
    judge: JudgeSettings = JudgeSettings()


class RunFacts(Record):
    """Where and with what a run was made (written to run.json beside the settings)."""

    started: str  #: ISO 8601, UTC
    hkbench: str
    versions: dict[str, str]
    hardware: dict[str, str]
    problem_set: str | None = None  #: the name of the collection: "KernelBench", "hkbench"; `None`: an older run
    device: DeviceFacts | None = None  #: the first of the devices, with the source of each fact; `None`: an older run
    #: By problem of the plan, the null controls that pass its check (empty: none does); a problem that is missing here
    #: was not audited. `None`: the run is older than the audit.
    weak: dict[str, tuple[str, ...]] | None = None
    price: Price | None = None  #: of the model; `None`: not known. That of the last session which knew one
    judge_price: Price | None = None  #: of the judge's model, where a judge is asked


class RunSources(Record):
    """Where what a run was begun with lay, as absolute paths: its folder alone is enough to resume it."""

    problems: tuple[str, ...]  #: the folders of the problems' files
    prompts: str
    categories: str | None = None  #: a file; `None`: the strategy needs none


class Event(Record):
    """One line of journal.jsonl. `time` is seconds since the epoch."""

    time: float


class DevicePlace(Record):
    """Which of a host's devices one of the run's is, for whoever asks the driver how it does."""

    index: int  #: in the run
    name: str
    uuid: str | None = None  #: as the driver's tools print it: "GPU-..."
    pci: str | None = None  #: "0000:1b:00", domain, bus and device


class RunStarted(Event):
    """A session begins, perhaps on another host than the one before."""

    event: Literal["run_started"] = "run_started"
    resumed: bool
    host: str | None = None  #: `None`: an older run
    devices: tuple[DevicePlace, ...] = ()


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


class ReplyReceived(Event):
    event: Literal["reply_received"] = "reply_received"
    key: SampleKey
    model: str
    usage: Usage
    seconds: float | None
    tries: int
    replayed: bool
    finish_reason: str | None


class GenerationFailed(Event):
    """The service failed, not the model's answer: never counted as a candidate's failure."""

    event: Literal["generation_failed"] = "generation_failed"
    key: SampleKey
    error: str
    message: str


class AdviceAsked(Event):
    event: Literal["advice_asked"] = "advice_asked"
    key: AdviceKey
    kind: QuestionKind
    about: SampleKey


class AdviceReceived(Event):
    """An answer of the judge, usable or not."""

    event: Literal["advice_received"] = "advice_received"
    key: AdviceKey
    kind: QuestionKind
    about: SampleKey
    form: AnswerForm
    note: str | None  #: what was wrong with it, or what was put right
    model: str
    usage: Usage
    seconds: float | None
    tries: int
    replayed: bool
    finish_reason: str | None


class AdviceFailed(Event):
    """The service failed, not the judge's answer."""

    event: Literal["advice_failed"] = "advice_failed"
    key: AdviceKey
    error: str
    message: str


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


class CandidateExtracted(Event):
    event: Literal["candidate_extracted"] = "candidate_extracted"
    key: SampleKey
    rule: ExtractionRule
    sha256: str | None


class StageEntered(Event):
    """The evaluation of a sample has reached a stage (for whoever watches)."""

    event: Literal["stage_entered"] = "stage_entered"
    key: SampleKey
    stage: Stage
    device: int | None = None  #: the index of the one that is lent to it; `None`: none is (or an older run)


class Turns(Record):
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
    own: float | None = None  #: `Work.own_share`; `None`: not traced, or an older run
    ownership: Ownership | None = None  #: `Verdict.ownership`; `None`: not asked, or an older run
    language: Backend | None = None  #: of its kernels; `None`: not known, or an older run
    seconds: float
    turns: Turns | None = None  #: `None`: an older run, or nothing was run (no code, or a verdict reached before)
    copy_of: SampleKey | None = None  #: the sample with the same code whose verdict it is

    @classmethod
    def of(cls, time: float, key: SampleKey, verdict: Verdict, turns: Turns | None = None) -> Self:
        """The event of a verdict at a time, in seconds since the epoch."""
        failure, speedup = verdict.failure, verdict.speedup
        return cls(
            time=time,
            key=key,
            status=verdict.status,
            kind=failure.kind if failure is not None else None,
            stage=failure.stage if failure is not None else None,
            speedup=speedup.value if speedup is not None else None,
            low=speedup.low if speedup is not None else None,
            high=speedup.high if speedup is not None else None,
            own=verdict.work.own_share if verdict.work is not None else None,
            ownership=verdict.ownership,
            language=verdict.language.backend if verdict.language is not None else None,
            seconds=sum(stage.seconds for stage in verdict.stages),  # work, without waiting for a turn
            turns=turns,
            copy_of=verdict.copy_of,
        )


class EvaluationFailed(Event):
    """The machine failed, not the candidate: the sample is judged again on resume."""

    event: Literal["evaluation_failed"] = "evaluation_failed"
    key: SampleKey
    error: str
    message: str

    @classmethod
    def of(cls, time: float, key: SampleKey, error: Exception) -> Self:
        """The event of an error at a time, in seconds since the epoch."""
        return cls(time=time, key=key, error=type(error).__name__, message=str(error))


class AttemptClosed(Event):
    event: Literal["attempt_closed"] = "attempt_closed"
    problem: str
    attempt: int
    best_sample: int | None
    status: Status | None
    speedup: float | None


class ProblemClosed(Event):
    event: Literal["problem_closed"] = "problem_closed"
    problem: str
    solved: bool
    compiled: bool = False  #: its best kernel was compiled and, in such a run, not measured: neither solved nor not
    best: SampleKey | None
    speedup: float | None
    category: str | None = None  #: strategy staged: what kind of problem it is
    error: str | None = None  #: a failure of the machine or the service that ended it early


class RunStopping(Event):
    """The run was told to end before its plan does; what is under way may still be waited for."""

    event: Literal["run_stopping"] = "run_stopping"
    reason: str


class RunClosed(Event):
    event: Literal["run_closed"] = "run_closed"
    complete: bool
    reason: str | None = None


#: What the service or the machine failed at, never a candidate.
MachineFailed = GenerationFailed | AdviceFailed | EvaluationFailed

AnyEvent = Annotated[
    RunStarted
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
