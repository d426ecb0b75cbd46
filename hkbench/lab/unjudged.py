"""Verdicts that are reached without judging: on a reply without code, and on code that has a verdict already."""

from __future__ import annotations

from hkbench.engine import Evaluating
from hkbench.lab.prompting import Prompter
from hkbench.problems.sizes import sizes_in_force
from hkbench.records import Conditions, Extraction, Failure, FailureKind, Problem, SampleKey, Stage, Status, Verdict

#: Kinds of failure that a busy machine can cause.
_BY_LOAD = frozenset({FailureKind.TIMEOUT, FailureKind.BUILD_TIMEOUT, FailureKind.OUT_OF_MEMORY, FailureKind.SUSPECT})


def no_code(problem: Problem, extraction: Extraction, prompter: Prompter, evaluator: Evaluating) -> Verdict:
    """Make the verdict on a reply without a candidate: a result like any other."""
    message = extraction.note or "the reply holds no code"
    return Verdict(
        problem=problem.name,
        status=Status.INCORRECT,
        failure=Failure(stage=Stage.EXTRACT, kind=FailureKind.NO_CODE, message=message),
        conditions=Conditions(
            backend=prompter.backend,
            device=evaluator.device.kind,
            device_name=evaluator.device.name,
            sizes=sizes_in_force(evaluator.sizes, problem),
            candidate_sha256=None,
            problem_sha256=problem.sha256,
            track=evaluator.track,
            isolation=evaluator.isolation,  # what would have confined it: nothing was run
        ),
    )


def holds_for_copies(verdict: Verdict) -> bool:
    """Tell whether other samples with the same code get this verdict; else they are judged anew."""
    return verdict.failure is None or verdict.failure.kind not in _BY_LOAD


def repeated(verdict: Verdict, first: SampleKey) -> Verdict:
    """Make the verdict of `first` that of another sample with the same code; it took no work."""
    if verdict.copy_of is not None:
        return verdict
    said = f"same code as {first.attempt}.{first.sample}, whose verdict this is"
    conditions = verdict.conditions.model_copy(update={"warnings": (*verdict.conditions.warnings, said)})
    return verdict.model_copy(update={"conditions": conditions, "copy_of": first, "stages": ()})
