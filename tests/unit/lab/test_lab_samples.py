"""Which sample of an attempt is the best."""

from __future__ import annotations

from itertools import pairwise

import pytest
from support.run_folder import compiled, correct, incorrect

from hkbench.lab import Sample, best_of
from hkbench.lab.samples import rank, replaces
from hkbench.records import (
    Extraction,
    ExtractionRule,
    Failure,
    FailureKind,
    KernelResources,
    Mismatch,
    Reply,
    SampleKey,
    Stage,
    Verdict,
)

NAME = "1_ReLU"


def sample(number: int, verdict: Verdict | None) -> Sample:
    return Sample(
        key=SampleKey(problem=NAME, attempt=1, sample=number),
        reply=Reply(text="", model="m"),
        extraction=Extraction(rule=ExtractionRule.NONE, source=None),
        candidate=None,
        verdict=verdict,
    )


def wrong(elements_wrong: int) -> Verdict:
    mismatch = Mismatch(
        output="output",
        index=(0,),
        expected=1.0,
        got=2.0,
        max_abs_error=1.0,
        max_rel_error=1.0,
        wrong_elements=elements_wrong,
        elements=100,
    )
    failure = Failure(stage=Stage.COMPARE, kind=FailureKind.WRONG_VALUES, message="m", mismatch=mismatch)
    return incorrect(NAME).model_copy(update={"failure": failure})


#: From the worst to the best.
LADDER = [
    incorrect(NAME, FailureKind.NO_CODE, Stage.EXTRACT),
    incorrect(NAME, FailureKind.SYNTAX_ERROR, Stage.PARSE),
    incorrect(NAME, FailureKind.BUILD_ERROR, Stage.BUILD),
    incorrect(NAME, FailureKind.LOAD_ERROR, Stage.LOAD),
    incorrect(NAME, FailureKind.CRASH, Stage.RUN),
    wrong(90),
    wrong(1),
    compiled(NAME),
    correct(NAME, 0.1),
    correct(NAME, 0.99),
    correct(NAME, 1.0),
    correct(NAME, 3.0),
]


@pytest.mark.parametrize(("worse", "better"), list(pairwise(LADDER)))
def test_rank_goes_up_the_ladder(worse: Verdict, better: Verdict) -> None:
    assert rank(worse) < rank(better)


def test_best_of_takes_the_highest_rank_wherever_it_stands() -> None:
    samples = [sample(number, verdict) for number, verdict in enumerate([LADDER[5], LADDER[9], LADDER[2]], start=1)]
    assert best_of(samples) is samples[1]
    assert best_of(samples[::-1]) is samples[1]


def test_of_equals_the_first_sample_is_the_best() -> None:
    samples = [sample(2, LADDER[2]), sample(1, LADDER[2]), sample(3, LADDER[2])]
    assert best_of(samples).key.sample == 1


def test_samples_without_a_verdict_do_not_count() -> None:
    assert best_of([sample(1, None), sample(2, LADDER[0])]).key.sample == 2


@pytest.mark.parametrize(("verdict", "succeeded"), [(LADDER[-2], True), (LADDER[-3], False), (LADDER[2], False)])
def test_success_is_correct_and_not_slower(verdict: Verdict, succeeded: bool) -> None:
    assert (sample(1, verdict).succeeded, sample(1, verdict).solved) == (succeeded, succeeded)


def test_what_is_only_compiled_is_a_success_that_solves_nothing() -> None:
    one = sample(1, compiled(NAME))
    assert (one.succeeded, one.sound, one.compiled) == (True, True, True)
    assert (one.solved, one.correct) == (False, False)


def with_findings(*found: str) -> Verdict:
    kernel = KernelResources(name="k", arch="gfx942", findings=found)
    return compiled(NAME).model_copy(update={"resources": (kernel,)})


def test_of_compiled_kernels_the_one_with_fewer_findings_is_better() -> None:
    assert rank(with_findings("a", "b")) < rank(with_findings("a")) < rank(with_findings())
    assert rank(LADDER[6]) < rank(with_findings("a", "b", "c")) < rank(LADDER[8])


def test_of_equal_kernels_a_later_attempts_takes_the_place_only_where_nothing_is_measured() -> None:
    assert replaces(with_findings("a"), with_findings("b"))
    assert not replaces(with_findings("a"), with_findings())
    assert not replaces(correct(NAME, 2.0), correct(NAME, 2.0))
    assert replaces(correct(NAME, 2.1), correct(NAME, 2.0))


def test_a_sample_that_was_not_judged_did_not_succeed() -> None:
    assert not sample(1, None).succeeded
