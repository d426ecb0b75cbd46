"""PROBLEM/evaluation/eval_XXXX.json: the verdicts of a problem in order, each with what led to it."""

from __future__ import annotations

from hkbench.records import AnswerForm, FailureKind, QuestionKind, Stage, Status, best_of, speedup_of
from hkbench.report import aggregate
from hkbench.report.build import advice_report, estimate, place
from hkbench.report.model import Estimate, Place, ReportRecord
from hkbench.store.files import write_atomic
from hkbench.store.layout import ProblemPaths
from hkbench.store.reader import ProblemView, RunView, SampleView


class ReadAdvice(ReportRecord):
    """What the judge said before this attempt, as it was read."""

    kind: QuestionKind | None
    about: Place | None
    form: AnswerForm | None
    note: str | None
    said: dict[str, str] | None  #: `None`: it could not be used


class EvaluationRecord(ReportRecord):
    """One verdict on a correctness, and what its prompt was made from."""

    problem: str
    evaluation: int  #: counted from 0
    round: int  #: the attempt, counted from 0, which is the seed
    attempt: int
    sample: int
    mode: str | None  #: the step that the attempt is, as its strategy describes it; `None`: not known
    starts_from: Place | None
    status: Status
    stage: Stage | None  #: that failed
    kind: FailureKind | None
    message: str | None
    speedup: Estimate | None
    best_speedup_so_far: float | None  #: with this one
    best_so_far: Place | None
    advice: ReadAdvice | None
    metrics_shown: tuple[str, ...]  #: of the kernel that it starts from, to the judge or in the prompt


def write_evaluations(run: RunView) -> None:
    """Write the files of each problem that has verdicts, where the strategy is stepwise; `OSError` passes."""
    if not run.config.strategy.stepwise:
        return
    for problem in run.problems:
        paths = run.paths.problem(problem.name)
        found = evaluations(problem)
        if found:
            paths.evaluation(0).parent.mkdir(parents=True, exist_ok=True)
        for one in found:
            write_atomic(paths.evaluation(one.evaluation), one.model_dump_json(indent=2) + "\n")
        _remove_from(paths, len(found))


def _remove_from(paths: ProblemPaths, number: int) -> None:
    """Remove files of an earlier report that had more verdicts than can be read now."""
    while paths.evaluation(number).exists():
        paths.evaluation(number).unlink()
        number += 1


def evaluations(problem: ProblemView) -> tuple[EvaluationRecord, ...]:
    """Return the judged samples by attempt and sample."""
    judged = [sample for sample in problem.samples if sample.judged]
    return tuple(_evaluation(problem, judged, number) for number in range(len(judged)))


def _evaluation(problem: ProblemView, judged: list[SampleView], number: int) -> EvaluationRecord:
    sample = judged[number]
    attempt, failure = sample.key.attempt, sample.failure
    assert sample.status is not None, "it is judged"
    best = best_of(judged[: number + 1])
    advice = _advice(problem, attempt)
    return EvaluationRecord(
        problem=problem.name,
        evaluation=number,
        round=attempt - 1,
        attempt=attempt,
        sample=sample.key.sample,
        mode=aggregate.step_of(problem, attempt),
        starts_from=place(problem.parents.get(attempt)),
        status=sample.status,
        stage=failure.stage if failure is not None else None,
        kind=failure.kind if failure is not None else None,
        message=aggregate.message_of(failure.message) if failure is not None else None,
        speedup=estimate(sample.speedup),
        best_speedup_so_far=speedup_of(best),
        best_so_far=place(best.key) if best is not None else None,
        advice=advice,
        metrics_shown=_metrics(problem, attempt),
    )


def _advice(problem: ProblemView, attempt: int) -> ReadAdvice | None:
    """Return the advice of the last call: the first one was put right, or neither could be used."""
    given = [advice_report(one) for one in problem.advice if one.key.attempt == attempt]
    if not given:
        return None
    last = given[-1]
    return ReadAdvice(kind=last.kind, about=last.about, form=last.form, note=last.note, said=last.said)


def _metrics(problem: ProblemView, attempt: int) -> tuple[str, ...]:
    asked = [one.metrics for one in problem.advice if one.key.attempt == attempt]
    shown = asked[-1] if asked else problem.metrics.get(attempt, ())
    return tuple(map(aggregate.message_of, shown))
