"""The reports as data. `detailed_report.schema.json` is generated from `Report`.

Seconds everywhere; `null` where a figure is not known, never 0; no NaN and no infinity. Fields are only ever
added within one `schema_version`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import ConfigDict

from hkbench.records import (
    AnswerForm,
    Backend,
    FailureKind,
    Outcome,
    Ownership,
    QuestionKind,
    Record,
    Role,
    RunConfig,
    RunFacts,
    Stage,
    Status,
    Track,
    Usage,
)

FAST_P = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)  #: the thresholds of fast_p

DEFINITIONS = {
    "outcome": "class of a sample by the 95 % interval of its speed-up: faster (all of it above 1), on_par (it "
    "contains 1) or slower; wrong (failed at any stage), refused, compiled or not_judged. A problem has the class of "
    "its fastest correct sample; without one it is refused if any sample was, else compiled, else wrong",
    "solved": "some sample is correct with a speed-up of at least 1.0 by its estimate, whatever the interval; exit "
    "codes and the end of a problem go by it. A problem can be solved and on a par",
    "own": "share of the work that the candidate's own kernels did, without copies, fills and the interpreter; of a "
    "problem, its best sample's. null: not profiled, as of every sample that failed before it was timed. "
    "`ownership` says whose work it was",
    "ownership": "own (the candidate's kernels did at least half of the work, and others' computation took no more "
    "than track own allows), not_own, or not_established: this machine or device gives no evidence of it. own_kernels "
    "counts the three apart",
    "correct": "some sample passed every trial of the comparison",
    "judged": "some sample reached a verdict on its correctness; shares are of the judged problems, so that "
    "a failing machine or service is not a failing model",
    "compiled": "some sample was built for an architecture and, in a run of --build-only, not run: neither solved nor "
    "failed. Nothing is measured in such a run, so that fast_p and pass_at_k are null; a problem is judged there only "
    "when every sample failed before it could be run",
    "speedup": "median time of the baseline / median time of the candidate; never of an incorrect kernel",
    "fast_p": "share of the judged problems whose best correct sample has a speed-up > p, as in KernelBench (p = 0: "
    "that have a correct sample); by the estimate, whatever the interval",
    "pass_at_k": "chance that at least one of k samples of attempt 1 (drawn from one prompt, before any "
    "feedback) is correct: unbiased estimator 1 - C(n-c, k) / C(n, k) over the n judged samples, c of them "
    "correct; overall the mean over the problems with n >= k",
    "geometric_mean_speedup": "over the best correct sample of each correct problem, slow ones included; the "
    "interval is a 95 % percentile bootstrap over problems, absent for fewer than two",
    "geometric_mean_speedup_all": "over all judged problems, with 1 where no kernel is correct and faster (the "
    "reference is kept): unlike the mean over the correct ones it compares runs that are correct on different problems",
    "tokens": "of all replies, the judge's and replayed ones included; total is of the replies that reported the "
    "figure, null when none did; reasoning is part of output, cached_input of input",
    "cost": "of the model calls by the price in facts (of the judge's by judge_price), for a million tokens of input, "
    "cached input and output (reasoning included); replayed replies cost nothing. total is of the replies whose cost "
    "is known, null when none is: it needs a price, and a service that said input and output; cached input that it did "
    "not say is taken as not cached. What failed tries and calls cost is not known and not in it",
    "cost_per_solved": "cost of all calls / solved problems; null when a part of the cost is not known, or no problem "
    "is solved",
    "roles": "calls by what the model was asked as: coder writes kernels, judge says what to change; tokens, cost, "
    "calls and generation_seconds elsewhere are of both. usage.csv has a row a call",
    "advice": "what the judge answered before the prompt of that attempt, and of which sample (about); said is what "
    "was read in it, null where it could not be used",
    "decisions": "what the strategy chose where it could have chosen otherwise, from that attempt on",
    "budget": "strategy staged, by category: stages that were worked, skipped by a rule, and left out by an exit of "
    "rules (not those that attempts ran out for). saved is an estimate: so many stages times the mean of the "
    "category's worked stages in this run (attempts; input and output tokens and cost where every call told them; "
    "seconds of model calls and evaluations, summed), null where none was worked. What it might have cost is an "
    "estimate too: of the same stage where it was worked in the same category in this run, in how many of how many the "
    "best so far rose (gained of worked; from no correct kernel to one counts), and by what factor, as a geometric "
    "mean over those that began with a correct kernel, 1 where nothing was gained; null where there is none. The "
    "problems that rules stopped differ from those that went on, so neither says what would have happened",
    "model_failures": "verdicts on candidates that are not correct, by stage and kind",
    "refused": "the answers of a sample were right, but the clocks did not agree, it was faster than the device can "
    "be, or the work was not its own kernels'; counted among the judged, never correct",
    "weak": "a problem whose check passes an answer that was made without doing the work (`hkbench audit`, "
    "docs/weak_problems.md); without_weak gives the headlines over the other problems, null where no problem of "
    "the run is known to be weak",
    "languages": "what the kernels of the samples are written in, whatever backend was asked for: by the kernels that "
    "a trace saw run, of a sample that was built only by its source; HipKittens where kittens.cuh is included and an "
    "operation on tiles or vectors stands in one of these kernels; unknown where no such kernel was seen, as of every "
    "sample that failed",
    "machine_failures": "failures of the service or the machine; never counted against the model",
    "wall_seconds": "while the run was alive; the time between a crash and the resume is not in it",
}


class ReportRecord(Record):
    """A part of a report: as `Record`, and every number finite."""

    model_config = ConfigDict(allow_inf_nan=False)


class Estimate(ReportRecord):
    """A figure with its 95 % interval, where there is one."""

    value: float
    low: float | None
    high: float | None


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

    language: Backend | None
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


class SampleReport(ReportRecord):
    """One sample; `status` is `None` when it was not judged."""

    attempt: int
    sample: int
    outcome: Outcome
    status: Status | None
    stage: Stage | None  #: that failed
    kind: FailureKind | None
    message: str | None
    language: Backend | None  #: of its kernels; `None`: not known
    own: float | None  #: share of the work that its own kernels did, 0..1; `None`: not profiled
    ownership: Ownership | None  #: whose work it was; `None`: not timed
    speedup: Estimate | None
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


class AdviceReport(ReportRecord):
    """One answer of the judge. `None`: not known."""

    attempt: int  #: whose prompt it is for
    call: int  #: 1: the question; 2: the request to put the answer right
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
    parent: Place | None  #: the sample that its prompt tells of
    judged: int
    correct: int
    fast: int
    solved_so_far: bool
    best_speedup_so_far: float | None


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
    baseline_seconds: float | None  #: of the best sample
    candidate_seconds: float | None
    own: float | None  #: of the best sample
    ownership: Ownership | None  #: of the best sample
    language: Backend | None  #: of the best sample
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
    pass_at_k: tuple[PassAtK, ...]
    geometric_mean_speedup: Estimate | None
    geometric_mean_speedup_all: Estimate | None  #: with 1 for what is not correct and faster


class Overall(ReportRecord):
    problems: int
    finished: int
    judged: int
    outcomes: dict[Outcome, int]  #: problems by class, all classes, best first
    own_kernels: OwnKernels
    correct: int
    correct_share: float | None  #: of the judged problems; `None`: none was judged
    solved: int
    compiled: int  #: with a sample that was built only
    samples_judged: int
    samples_correct: int
    samples_refused: int
    samples_compiled: int
    languages: tuple[LanguageCount, ...]  #: of all samples with a verdict, most frequent first
    weak_problems: tuple[str, ...]
    not_audited: tuple[str, ...]  #: problems of which it is not known whether they are weak
    without_weak: Headline | None  #: the headlines without `weak_problems`; `None` when there are none
    fast_p: dict[str, float] | None
    pass_at_k: tuple[PassAtK, ...]
    geometric_mean_speedup: Estimate | None
    geometric_mean_speedup_all: Estimate | None  #: with 1 for what is not correct and faster
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
    language: Backend | None  #: of the best sample
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
