"""The reports as data. `detailed_report.schema.json` is generated from `Report`.

Seconds everywhere; `null` where a figure is not known, never 0; no NaN and no infinity. Fields are only ever
added within one `schema_version`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

from hkbench.records import (
    AnswerForm,
    BackendName,
    BaselineName,
    BoundQuality,
    ExperienceFacts,
    FailureKind,
    Layout,
    Outcome,
    Ownership,
    QuestionKind,
    Role,
    RunConfig,
    RunFacts,
    Sol,
    Stage,
    Status,
    Track,
    Usage,
)
from hkbench.report.record import CardsReport, Estimate as Estimate, ReportRecord as ReportRecord
from hkbench.store.tree import branches

FAST_P = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)  #: the thresholds of fast_p


class PassAtK(ReportRecord):
    """pass@k; `value` is `None` when no problem has k judged samples in attempt 1."""

    k: int
    value: float | None
    problems: int  #: it is the mean over so many


class TokenCount(ReportRecord):
    """Sum over the replies that reported the figure, and how many did not."""

    total: int | None
    unreported_replies: int


class Tokens(ReportRecord):
    input: TokenCount
    output: TokenCount
    reasoning: TokenCount
    cached_input: TokenCount


class Cost(ReportRecord):
    """Money for model calls."""

    total: float | None  #: 0 when no model was called
    currency: str | None  #: `None`: there is no price
    unpriced_replies: int  #: of model calls, whose cost is not known


class Calls(ReportRecord):
    """Model calls."""

    made: int  #: answered by the model
    replayed: int  #: answered from a recording
    retries: int  #: further tries that the answered calls took
    failed: int  #: given up


class RoleReport(ReportRecord):
    """All calls of one role."""

    role: Role
    models: tuple[str, ...]  #: that answered, as the service names them
    calls: Calls
    tokens: Tokens
    cost: Cost
    seconds: float | None  #: summed over calls, which overlap


class FailureCount(ReportRecord):
    stage: Stage
    kind: FailureKind
    count: int


class LanguageCount(ReportRecord):
    """Samples whose kernels are written in it; `None`: not known."""

    language: BackendName | None
    count: int


class MachineFailure(ReportRecord):
    step: Literal["generation", "evaluation", "problem"]
    error: str
    count: int
    last_message: str


class Place(ReportRecord):
    """A sample of the same problem."""

    attempt: int
    sample: int


class FailedShape(ReportRecord):
    """A further shape that a sample is not right at."""

    constants: dict[str, int | float]  #: of the problem's file, where they differ from those in force
    visible: bool  #: named by the file; else drawn
    kind: FailureKind


class ShapesReport(ReportRecord):
    """Further shapes of a correct sample."""

    checked: int
    right: int
    failed: tuple[FailedShape, ...]


class SampleReport(ReportRecord):
    """One sample; `status` is `None` when it was not judged."""

    attempt: int
    sample: int
    outcome: Outcome
    status: Status | None
    stage: Stage | None  #: that failed
    kind: FailureKind | None
    message: str | None
    language: BackendName | None  #: of its kernels; `None`: not known
    own: float | None  #: share of the work that its own kernels did, 0..1; `None`: not profiled
    ownership: Ownership | None  #: whose work it was; `None`: not timed
    would_fail: tuple[FailureKind, ...] = ()  #: what hkbench's rules refuse of it, where KernelBench's are in force
    speedup: Estimate | None
    over_baselines: dict[BaselineName, Estimate]  #: the speed-up over each further baseline that was timed
    sol: Sol | None  #: how near it is to the least time of the device
    baseline_seconds: float | None
    candidate_seconds: float | None
    replayed: bool | None
    finish_reason: str | None
    tokens: Usage
    cost: float | None  #: `None`: not known, or there is no reply; 0 when it was replayed
    generation_seconds: float | None
    evaluation_seconds: float | None
    warnings: tuple[str, ...]
    copy_of: Place | None = None  #: the sample with the same code whose verdict this is; `None`: its own
    shapes: ShapesReport | None = None  #: `None`: no further shape was looked at


class AdviceReport(ReportRecord):
    """One answer of a model that reads kernels. `None`: not known."""

    attempt: int  #: whose prompt it is for
    call: int  #: 1: the question; 2: the request to put the answer right
    role: Role  #: who answered
    kind: QuestionKind | None
    about: Place | None
    form: AnswerForm | None
    note: str | None  #: what was wrong with it, or what was put right
    said: dict[str, str] | None
    model: str | None
    tokens: Usage
    cost: float | None
    seconds: float | None
    tries: int
    replayed: bool
    finish_reason: str | None


class DecisionReport(ReportRecord):
    """A choice of the strategy."""

    attempt: int  #: the first one that it is about
    what: str
    choice: str
    why: str


class AttemptReport(ReportRecord):
    """One attempt of a problem; what it came to together with the attempts before it."""

    attempt: int
    parent: Place | None  #: the sample that its prompt tells of, or that its code was made from
    step: str | None  #: what it is, as the strategy describes it; `None`: just a try, or not known
    judged: int
    correct: int
    fast: int
    solved_so_far: bool
    best_speedup_so_far: float | None
    gain: float | None = None  #: its best sample's speed-up over its parent; `None`: one of them has none
    led_to_best: bool = False  #: the best sample is its own, or was made from it, in one or more steps


class ProblemState(StrEnum):
    FINISHED = "finished"
    UNFINISHED = "unfinished"  #: begun, and not closed in the journal (or closed by an error)
    NOT_STARTED = "not_started"


class ProblemReport(ReportRecord):
    problem: str
    state: ProblemState
    outcome: Outcome
    error: str | None
    judged: int  #: samples with a verdict on correctness
    compiled: int  #: samples that were built only
    correct_samples: int
    refused_samples: int  #: right answers that do not count
    weak: tuple[str, ...] | None  #: null controls that pass its check; `None`: not audited
    correct: bool
    solved: bool
    solved_at_attempt: int | None
    best_attempt: int | None
    best_sample: int | None
    best_speedup: Estimate | None
    best_over_baselines: dict[BaselineName, Estimate]
    best_sol: Sol | None
    baseline_seconds: float | None  #: of the best sample
    candidate_seconds: float | None
    own: float | None  #: of the best sample
    ownership: Ownership | None  #: of the best sample
    language: BackendName | None  #: of the best sample
    failed_stage: Stage | None  #: without a correct sample, of the one that reached the latest stage
    failed_kind: FailureKind | None
    fast_p: dict[str, float] | None  #: 1.0 or 0.0 by its best correct sample; `None` when not judged
    pass_at_k: tuple[PassAtK, ...]
    attempts: tuple[AttemptReport, ...]
    model_failures: tuple[FailureCount, ...]
    tokens: Tokens
    cost: Cost
    calls: Calls
    wall_seconds: float | None
    generation_seconds: float | None  #: summed over calls, which overlap
    evaluation_seconds: float | None
    samples: tuple[SampleReport, ...]
    decisions: tuple[DecisionReport, ...]
    advice: tuple[AdviceReport, ...]

    def drawn(self, layout: Layout, attempts: Iterable[int]) -> list[tuple[int, str]]:
        """Order attempts as the layout has them, each with the lines of a tree before it."""
        return branches(attempts, {a.attempt: a.parent.attempt for a in self.attempts if a.parent is not None}, layout)

    def step(self, attempt: int) -> str | None:
        """Return what an attempt is, as the strategy describes it."""
        return next((one.step for one in self.attempts if one.attempt == attempt), None)

    @property
    def steps(self) -> list[int]:
        """The attempts that something is known of, in order; one can be decided on and not begun."""
        found = {sample.attempt for sample in self.samples} | {one.attempt for one in self.advice}
        return sorted(found | {one.attempt for one in self.decisions})


class AttemptGain(ReportRecord):
    """Where the run stood after attempt k of every problem (a problem solved earlier counts as it was)."""

    attempt: int
    problems_tried: int  #: problems with a judged sample in this very attempt
    solved: int
    newly_solved: int
    correct: int
    geometric_mean_speedup: float | None  #: of the best correct samples so far


class StageBudget(ReportRecord):
    """One stage of a category; see the definition of budget."""

    stage: str
    worked: int
    skipped: int
    left_out: int
    gained: int  #: of `worked`
    geometric_mean_gain: float | None


class Saved(ReportRecord):
    """An estimate of what was not done. `None`: nothing to estimate it by."""

    attempts: float | None
    tokens: float | None
    cost: float | None
    seconds: float | None


class CategoryBudget(ReportRecord):
    """What skipping and early exits saved in a category, and what they might have cost."""

    category: str
    problems: int
    worked: int
    skipped: int
    left_out: int
    saved: Saved
    stages: tuple[StageBudget, ...]  #: as they were first decided on


class OwnKernels(ReportRecord):
    """Whose kernels the best samples of the faster problems are."""

    faster: int
    own: int  #: of these, those whose own kernels did the work
    not_established: int  #: this machine or device gives no evidence
    not_profiled: int  #: nothing says, as in an older run
    languages: tuple[LanguageCount, ...]  #: of these, most frequent first


class Headline(ReportRecord):
    """The headlines over a part of the problems."""

    problems: int
    judged: int
    outcomes: dict[Outcome, int]  #: problems by class, all classes, best first
    own_kernels: OwnKernels
    correct: int
    solved: int
    fast_p: dict[str, float] | None
    fast_p_over_best: dict[str, float] | None  #: over the fastest baseline; `None`: eager alone was timed
    over_baselines: dict[BaselineName, Estimate]  #: geometric mean of the speed-ups over each further baseline
    sol: Estimate | None  #: geometric mean of the floor over the kernel's time, of correct problems where that is known
    sol_bounds: dict[BoundQuality, int]  #: of how many of these problems the least time is how near
    pass_at_k: tuple[PassAtK, ...]
    geometric_mean_speedup: Estimate | None
    geometric_mean_speedup_all: Estimate | None  #: with 1 for what is not correct and faster


class Overall(Headline):
    """The headlines over all problems of a run, and what they took."""

    finished: int
    correct_share: float | None  #: of the judged problems; `None`: none was judged
    compiled: int  #: with a sample that was built only
    samples_judged: int
    samples_correct: int
    samples_refused: int
    samples_compiled: int
    languages: tuple[LanguageCount, ...]  #: of all samples with a verdict, most frequent first
    weak_problems: tuple[str, ...]
    not_audited: tuple[str, ...]  #: problems of which it is not known whether they are weak
    without_weak: Headline | None  #: the headlines without `weak_problems`; `None` when there are none
    attempts: tuple[AttemptGain, ...]
    model_failures: tuple[FailureCount, ...]
    machine_failures: tuple[MachineFailure, ...]
    tokens: Tokens
    cost: Cost
    cost_per_solved: float | None
    calls: Calls
    roles: tuple[RoleReport, ...]
    budget: tuple[CategoryBudget, ...] | None  #: by category, strategy staged; `None` of others
    sessions: int  #: 1 + the number of resumes
    wall_seconds: float | None
    generation_seconds: float | None
    evaluation_seconds: float | None


class DamageReport(ReportRecord):
    """A file or a line of the run folder that could not be read."""

    file: str
    line: int | None
    message: str


class Measured(ReportRecord):
    """What one measurement of a source gave."""

    attempt: int
    sample: int
    speedup: Estimate


class Disagreement(ReportRecord):
    """Two measurements of one source whose 95 % intervals exclude each other."""

    problem: str
    slower: Measured
    faster: Measured


class ExperienceReport(ReportRecord):
    """What a run asked earlier ones, and got."""

    database: str
    hold_out: str | None  #: nothing is recalled of problems with such a name
    content: ExperienceFacts | None  #: of the database when the run began
    asked: int  #: different questions
    kernels: int  #: of the answers, those that held a kernel
    remedies: int  #: those that held remedies
    moves: int  #: those that held moves
    pitfalls: int = 0  #: those that held pitfalls
    prompts: int  #: that showed a remedy


class Report(ReportRecord):
    """detailed_report.json."""

    schema_version: Literal[1] = 1
    title: str
    headline: tuple[str, ...]  #: the result in one sentence; then, where it has to be said, whose kernels they are
    track: Track
    device_name: str | None
    complete: bool
    incomplete_because: str | None
    config: RunConfig
    facts: RunFacts
    overall: Overall
    problems: tuple[ProblemReport, ...]
    damage: tuple[DamageReport, ...]
    disagreements: tuple[Disagreement, ...] = ()  #: of the machine's measurements with themselves, by problem
    experience: ExperienceReport | None = None  #: `None`: the run asked none
    cards: CardsReport | None = None  #: of a cluster, or of a host with several devices; `None`: one device
    definitions: dict[str, str]


class SummaryRow(ReportRecord):
    """A problem on one line: a row of summary.csv."""

    problem: str
    state: ProblemState
    outcome: Outcome
    solved: bool
    correct: bool
    best_speedup: float | None
    best_speedup_low: float | None
    best_speedup_high: float | None
    best_attempt: int | None
    best_sample: int | None
    own: float | None  #: of the best sample
    language: BackendName | None  #: of the best sample
    failed_kind: FailureKind | None  #: without a correct sample
    solved_at_attempt: int | None
    attempts: int
    samples_judged: int
    samples_correct: int
    samples_refused: int
    samples_compiled: int
    weak: bool | None  #: `None`: not audited
    calls_made: int
    calls_replayed: int
    tokens_input: int | None
    tokens_output: int | None
    tokens_reasoning: int | None
    tokens_cached_input: int | None
    cost: float | None  #: of the replies whose cost is known
    unpriced_replies: int
    currency: str | None
    wall_seconds: float | None
    error: str | None


class Summary(ReportRecord):
    """summary.json."""

    schema_version: Literal[1] = 1
    complete: bool
    incomplete_because: str | None
    started: str
    model: str
    backend: str
    device: str
    sizes: str
    overall: Overall
    problems: tuple[SummaryRow, ...]
    files: dict[str, str] = {}  #: what there is in the run folder, as paths below it
    problem_files: dict[str, dict[str, str]] = {}  #: by problem
