"""PROBLEM/evaluation/eval_XXXX.json: the verdicts of a problem in order, each with what led to it."""

from __future__ import annotations

from hkbench.records import AnswerForm, FailureKind, QuestionKind, Stage, Status
from hkbench.report import tally
from hkbench.report.build import advice_report, estimate, place
from hkbench.report.model import Estimate, Place, ReportRecord
from hkbench.store.files import write_atomic
from hkbench.store.layout import ProblemPaths
from hkbench.store.reader import ProblemView, RunView, SampleView

STRATEGIES = frozenset({"judge", "staged"})  #: whose attempts are steps of one way
SEED = "seed"


class ReadAdvice(ReportRecord):
    """What the judge said before this attempt, as it was read."""

    kind: QuestionKind | None
    about: Place | None
    form: AnswerForm | None
    note: str | None
    said: dict[str, str] | None  #: `None`: it could not be used


class Evaluation(ReportRecord):
    """One verdict on a correctness, and what its prompt was made from."""

    problem: str
    evaluation: int  #: counted from 0
    round: int  #: the attempt, counted from 0, which is the seed
    attempt: int
    sample: int
    mode: str | None  #: seed; repair or optimise of strategy judge; the stage of strategy staged; `None`: not known
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
    """Writes the files of each problem that has verdicts, for the strategies that have them; `OSError` passes."""
    if run.config.strategy not in STRATEGIES:
        return
    for problem in run.problems:
        paths = run.paths.problem(problem.name)
        found = evaluations(problem, run.config.strategy)
        if found:
            paths.evaluation(0).parent.mkdir(parents=True, exist_ok=True)
        for one in found:
            write_atomic(paths.evaluation(one.evaluation), one.model_dump_json(indent=2) + "\n")
        _remove_from(paths, len(found))


def _remove_from(paths: ProblemPaths, number: int) -> None:
    """Files of an earlier report that had more verdicts than can be read now."""
    while paths.evaluation(number).exists():
        paths.evaluation(number).unlink()
        number += 1


def evaluations(problem: ProblemView, strategy: str) -> tuple[Evaluation, ...]:
    """The judged samples by attempt and sample."""
    judged = [sample for sample in problem.samples if tally.is_judged(sample)]
    return tuple(_evaluation(problem, strategy, judged, number) for number in range(len(judged)))


def _evaluation(problem: ProblemView, strategy: str, judged: list[SampleView], number: int) -> Evaluation:
    sample = judged[number]
    attempt, verdict = sample.key.attempt, sample.verdict
    assert verdict is not None, "it is judged"
    best = tally.best_of(judged[: number + 1])
    advice = _advice(problem, attempt)
    failure = verdict.failure
    return Evaluation(
        problem=problem.name,
        evaluation=number,
        round=attempt - 1,
        attempt=attempt,
        sample=sample.key.sample,
        mode=_stage_of(problem, attempt) if strategy == "staged" else _question_of(advice, attempt),
        starts_from=place(problem.parents.get(attempt)),
        status=verdict.status,
        stage=failure.stage if failure is not None else None,
        kind=failure.kind if failure is not None else None,
        message=tally.message_of(failure.message) if failure is not None else None,
        speedup=estimate(verdict.speedup),
        best_speedup_so_far=tally.speedup_of(best) if best is not None else None,
        best_so_far=place(best.key) if best is not None else None,
        advice=advice,
        metrics_shown=_metrics(problem, attempt),
    )


def _advice(problem: ProblemView, attempt: int) -> ReadAdvice | None:
    """Of the last call: the first one was put right, or neither could be used."""
    given = [advice_report(one) for one in problem.advice if one.key.attempt == attempt]
    if not given:
        return None
    last = given[-1]
    return ReadAdvice(kind=last.kind, about=last.about, form=last.form, note=last.note, said=last.said)


def _question_of(advice: ReadAdvice | None, attempt: int) -> str | None:
    if attempt == 1:
        return SEED
    return advice.kind.value if advice is not None and advice.kind is not None else None


def _stage_of(problem: ProblemView, attempt: int) -> str:
    begun = [one.choice for one in problem.decisions if one.what == "stage" and one.attempt <= attempt]
    return tally.message_of(begun[-1]) if begun else SEED


def _metrics(problem: ProblemView, attempt: int) -> tuple[str, ...]:
    asked = [one.metrics for one in problem.advice if one.key.attempt == attempt]
    shown = asked[-1] if asked else problem.metrics.get(attempt, ())
    return tuple(map(tally.message_of, shown))
