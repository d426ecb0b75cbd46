"""The columns of samples.csv and of `hkbench.load_run(...).samples`: a row a sample."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from hkbench.records import (
    BackendName,
    BaselineName,
    BoundQuality,
    FailureKind,
    Outcome,
    Ownership,
    SampleKey,
    Stage,
    Status,
)
from hkbench.report import aggregate
from hkbench.report.model import ReportRecord
from hkbench.store.reader import ProblemView, RunView, SampleView

_MILLISECONDS = 1e3
#: The stages with a column of their own; finding the code in the reply takes no time.
_TIMED = tuple(stage for stage in Stage if stage is not Stage.EXTRACT)


class SampleRow(ReportRecord):
    """One sample. `None`, an empty cell: not known, or the sample did not come that far."""

    problem: str
    level: int | None
    category: str | None  #: that the strategy chose for the problem
    template: str | None  #: of the attempt's prompt, without its suffix
    attempt: int
    sample: int
    status: Status | None
    outcome: Outcome  #: by the 95 % interval of the speed-up
    stage: Stage | None  #: that failed
    kind: FailureKind | None
    speedup: float | None
    low: float | None  #: the 95 % interval of the speed-up
    high: float | None
    over_compile: float | None  #: the speed-up over torch.compile of the reference
    over_library: float | None  #: over the problem's `ModelBest`
    sol: float | None  #: the least time of the device over the kernel's, 0..1
    sol_bound: BoundQuality | None  #: how near that least time is to what a perfect kernel takes
    baseline_ms: float | None  #: median time of the reference
    candidate_ms: float | None
    own: float | None  #: share of the work that the sample's own kernels did, 0..1
    ownership: Ownership | None  #: whose work that is: own, not_own, not_established
    language: BackendName | None  #: of its kernels
    model: str | None  #: that answered, as the service names it
    tokens_input: int | None
    tokens_output: int | None
    tokens_reasoning: int | None  #: part of the output
    tokens_cached_input: int | None  #: part of the input
    cost: float | None
    currency: str | None
    replayed: bool | None  #: the reply was recorded before
    finish_reason: str | None
    seconds_model: float | None  #: of the call that was answered
    seconds_parse: float | None  #: of the stages of its evaluation; those of a copy are empty
    seconds_build: float | None
    seconds_load: float | None
    seconds_run: float | None
    seconds_compare: float | None
    seconds_time: float | None
    seconds_shapes: float | None
    seconds_evaluation: float | None  #: all stages, without waiting for a turn
    code_sha256: str | None
    parent: str | None  #: the sample that its prompt tells of, as ATTEMPT/SAMPLE
    copy_of: str | None  #: the sample with the same code whose verdict it has, as ATTEMPT/SAMPLE
    path: str  #: of its folder, below the run's
    code: str | None  #: path of its code, below the run's folder
    weak: bool | None  #: the problem's check passes an answer that was made without its work; `None`: not audited
    shapes_checked: int | None  #: further shapes at which it was looked at; empty: none
    shapes_right: int | None
    message: str | None  #: of the failure, cut
    warnings: str | None  #: of the verdict, with " | " between them


def sample_rows(run: RunView) -> Iterator[SampleRow]:
    """Yield all samples in the order of plan, attempts and samples."""
    for problem in run.problems:
        for sample in problem.samples:
            yield _row(run, problem, sample)


def _over(sample: SampleView, name: BaselineName) -> float | None:
    return sample.over[name].value if name in sample.over else None


def _row(run: RunView, problem: ProblemView, sample: SampleView) -> SampleRow:
    key, usage, failure = sample.key, sample.usage, sample.failure
    speedup, low, high = sample.gain or (None, None, None)
    files = run.paths.problem(key.problem).sample(key.attempt, key.sample)
    weak = (run.facts.weak or {}).get(key.problem)
    template = problem.templates.get(key.attempt)
    price = run.facts.price
    seconds = {f"seconds_{stage}": sample.stages.get(stage) for stage in _TIMED}
    return SampleRow(
        problem=key.problem,
        level=run.config.level,
        category=next((one.choice for one in problem.decisions if one.what == "category"), None),
        template=PurePath(template).stem if template is not None else None,
        attempt=key.attempt,
        sample=key.sample,
        status=sample.status,
        outcome=sample.outcome,
        stage=failure.stage if failure is not None else None,
        kind=failure.kind if failure is not None else None,
        speedup=speedup,
        low=low,
        high=high,
        over_compile=_over(sample, BaselineName.COMPILE),
        over_library=_over(sample, BaselineName.BEST),
        sol=sample.sol.fraction if sample.sol is not None else None,
        sol_bound=sample.sol.bound if sample.sol is not None else None,
        baseline_ms=sample.baseline * _MILLISECONDS if sample.baseline is not None else None,
        candidate_ms=sample.candidate * _MILLISECONDS if sample.candidate is not None else None,
        own=sample.own,
        ownership=sample.ownership,
        language=sample.language,
        model=sample.model,
        tokens_input=usage.input,
        tokens_output=usage.output,
        tokens_reasoning=usage.reasoning,
        tokens_cached_input=usage.cached_input,
        cost=aggregate.cost_of_call(sample, run.facts),
        currency=price.currency if price is not None else None,
        replayed=sample.replayed,
        finish_reason=sample.finish_reason,
        seconds_model=aggregate.seconds([sample.generation_seconds]),
        **seconds,
        seconds_evaluation=aggregate.seconds([sample.evaluation_seconds]),
        code_sha256=sample.code_sha256,
        parent=_place(problem.parents.get(key.attempt)),
        copy_of=_place(sample.copy_of),
        path=str(files.root.relative_to(run.paths.root)),
        code=str(files.code.relative_to(run.paths.root)) if files.code.is_file() else None,
        weak=bool(weak) if weak is not None else None,
        shapes_checked=len(sample.shapes.results) if sample.shapes is not None else None,
        shapes_right=sample.shapes.right if sample.shapes is not None else None,
        message=aggregate.message_of(failure.message) if failure is not None else None,
        warnings=" | ".join(map(aggregate.message_of, sample.warnings)) or None,
    )


def _place(key: SampleKey | None) -> str | None:
    return f"{key.attempt}/{key.sample}" if key is not None else None
