"""The settings of a run, and its journal's events."""

from __future__ import annotations

from time import time as now
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from hkbench.records.advice import AnswerForm, QuestionKind
from hkbench.records.base import BackendName, DeviceKind, Flag, FolderName, Record
from hkbench.records.device import DeviceFacts, NodeFacts
from hkbench.records.experience import ExperienceFacts, Hint, KernelSource, RecallKind, Remedy
from hkbench.records.failures import FailureKind
from hkbench.records.generation import (
    AdviceKey,
    CallKey,
    Candidate,
    Extraction,
    ExtractionRule,
    Price,
    Prompt,
    Reply,
    SampleKey,
    Usage,
)
from hkbench.records.moves import MoveGain
from hkbench.records.outcome import SOLVED
from hkbench.records.problem import SizeSet
from hkbench.records.strategy import RunStrategy, older_strategy
from hkbench.records.trust import IsolationLevel, Ownership, Races, RuleSet, Track
from hkbench.records.verdict import BaselineName, Stage, Status, Verdict

Seconds = Annotated[float, Field(gt=0), Flag("S", unit="number of seconds")]


class EvaluationSettings(Record):
    """How strictly and how long a candidate is judged."""

    #: A field with a docstring is an option of the commands that evaluate; the docstring is the option's help.
    model_config = ConfigDict(use_attribute_docstrings=True)

    trials: Annotated[int, Field(ge=1), Flag("N")] = 5
    """correctness trials, each with fresh inputs"""

    timing_runs: Annotated[int | None, Field(ge=1), Flag("N")] = None
    """timed runs of each side, interleaved; up to three times as many while it is not settled which is faster
    (default: on a GPU 40 to 300, until the interval is narrow; 30 to 90 on a CPU)"""

    baseline: Annotated[str, Flag("NAMES")] = "eager"
    """time also these baselines: eager (always; it decides), compile (torch.compile, warm), best (the problem's class
    ModelBest, a library's call); as eager,compile,best"""

    timing_seconds: Seconds = 30.0
    """no timed run of a round is begun after S seconds"""

    busy_wait: Annotated[float, Field(ge=0), Flag("S")] = 60.0
    """on a CPU with other work, wait up to S seconds in all for it to be quiet and time again (no longer at once than
    the timed calls took); 0: time once, and say that the verdict is unsettled"""

    warmups: Annotated[int, Field(ge=0), Flag("N", "--warmup")] = 3
    """calls of each side before the timed ones"""

    build_timeout: Seconds = 600.0
    """limit of a candidate's builds"""

    load_timeout: Seconds = 120.0
    """limit of importing a candidate, builds apart"""

    run_timeout: Seconds = 60.0
    """limit of one forward pass"""

    evaluation_timeout: Seconds = 1200.0
    """limit of all trials, timed runs and checks of a candidate together, builds apart"""

    memory_gib: Annotated[float | None, Field(gt=0), Flag("G", unit="number of GiB")] = None
    """memory limit of a candidate's processes (default: 80 % of the machine's)"""

    profile_slow: Annotated[bool, Flag(name="--no-profile")] = True
    """profile correct but slow candidates"""

    profile_fast: bool = False  #: correct candidates that are not slower than the baseline are profiled, too
    keep_assembly: bool = False  #: a batch keeps what the compiler made of each candidate, as text
    profile_timeout: Seconds = 300.0
    """limit of ncu or rocprof on one candidate, after which torch's profiler is used"""

    keep_profile: Annotated[str | None, Flag("DIR")] = None
    """keep what ncu or rocprof wrote and printed, in folders below DIR"""

    track: Track = Track.OWN
    """own: the candidate's own kernels have to do the work; any: library calls may"""

    rules: RuleSet = RuleSet.HKBENCH
    """whose contract a candidate has to hold to; kernelbench: KernelBench's own (static output buffers, results in
    place and kept parameters pass), and the verdict says which of hkbench's rules it breaks (docs/rules.md)"""

    shapes: Annotated[int | None, Field(ge=0), Flag("N")] = None
    """further shapes at which a correct candidate is looked at: half of them of the problem's own SHAPES, the others
    drawn; 0: none (default: 4 on a GPU, 2 on a CPU or an emulated GPU)"""

    require_shapes: bool = False
    """count only what is right at every further shape as correct"""

    races: Races = Races.FAIL
    """on an emulated GPU, what a missing wait or barrier is; fail: a failure; warn: a warning, and the values decide"""

    rtol: Annotated[dict[str, float], Flag("DTYPE=VALUE")] = {}
    """another tolerance, as float32=1e-5 (default: docs/method.md)"""

    require_isolation: IsolationLevel = IsolationLevel.LIMITS
    """evaluate nothing where candidates cannot be confined this far; `hkbench doctor` says how far they can"""

    stock_builds: bool = False
    """build as torch alone does, without precompiled headers"""

    prepare_builds: bool = False
    """precompile what the candidates' builds could have used: eval.py at its end (up to a minute), a batch beside its
    work, on a GPU without being asked"""

    host_copies: bool = False
    """pass inputs and outputs through host memory (for containers without shared GPU memory)"""

    @field_validator("baseline")
    @classmethod
    def _known(cls, names: str) -> str:
        unknown = [name for name in names.split(",") if name not in list(BaselineName)]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no baseline; they are {', '.join(BaselineName)}")
        return names

    @property
    def further_baselines(self) -> tuple[BaselineName, ...]:
        """Return the baselines beside eager, in the order in which they are timed."""
        return tuple(
            one for one in BaselineName if one is not BaselineName.EAGER and one.value in self.baseline.split(",")
        )


class RunConfig(Record):
    """What defines a run: the same settings resume it, other ones are refused."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    schema_version: Literal[1] = 1
    strategy: RunStrategy
    problems: tuple[FolderName, ...]
    problem_hashes: tuple[str, ...]
    level: int | None
    backend: BackendName
    device: DeviceKind
    compiled_for: str | None = None  #: the architecture, where nothing is measured: candidates are compiled for it only
    sizes: SizeSet
    samples: int = 3
    attempts: int = 3
    model: str
    base_url: str | None = None
    api: Literal["chat", "responses"] = "chat"
    temperature: float | None = None
    max_tokens: int | None = None  #: of one reply
    reasoning_effort: str | None = None
    replay: str | None = None
    judge_model: str | None = None  #: `None`: the strategy asks no judge
    prompts_sha256: str
    categories_sha256: str | None = None  #: `None`: the strategy needs none
    experience: str | None = None  #: the database that earlier runs are asked by; `None`: none is
    hold_out: str | None = None  #: regular expression on names of problems of which nothing is recalled
    evaluation: EvaluationSettings = Field(EvaluationSettings(), alias="judge")  #: `judge` in JSON, its first name

    @model_validator(mode="before")
    @classmethod
    def _read_older(cls, found: Any) -> Any:
        return older_strategy(found) if isinstance(found, dict) else found

    def settings(self) -> dict[str, Any]:
        """Return the settings by name, as JSON has them, with the strategy's name and its options among them."""
        found = self.model_dump(mode="json")
        strategy = found.pop("strategy")
        return {"strategy": strategy["name"], **strategy["options"], **found}


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
    experience: ExperienceFacts | None = None  #: `None`: the run asks none, or an older run
    nodes: tuple[NodeFacts, ...] = ()  #: of a cluster, at the start; empty: the run's own host measured


class RunSources(Record):
    """Where what a run was begun with lay, as absolute paths: its folder alone is enough to resume it."""

    problems: tuple[str, ...]  #: the folders of the problems' files
    prompts: str
    categories: str | None = None  #: a file; `None`: the strategy needs none


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
    about: str  #: digest of the problem's facts, or of the failure; empty of moves
    kernel: KernelSource | None = None  #: its code is the problem's known_kernel.py
    remedies: tuple[Remedy, ...] = ()
    moves: tuple[MoveGain, ...] = ()

    @property
    def found(self) -> bool:
        """Tell whether anything was known."""
        return self.kernel is not None or bool(self.remedies or self.moves)


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
