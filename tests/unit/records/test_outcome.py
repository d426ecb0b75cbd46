"""The class of a verdict by its interval, and of a problem by its best sample."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hkbench.records import Outcome, Standing, Status, best_of, outcome_of, problem_outcome


@dataclass(frozen=True, eq=False)
class One(Standing):
    status: Status | None = None
    gain: tuple[float, float | None, float | None] | None = None
    findings: int = 0
    unsettled: bool = False


@pytest.mark.parametrize(
    ("status", "speedup", "expected"),
    [
        (Status.FAST, (1.2, 1.01, 1.4), Outcome.FASTER),
        (Status.FAST, (1.2, 1.0, 1.4), Outcome.ON_PAR),
        (Status.FAST, (1.0, 0.835, 1.16), Outcome.ON_PAR),
        (Status.SLOW, (0.999, 0.996, 1.0), Outcome.ON_PAR),
        (Status.SLOW, (0.9, 0.8, 0.99), Outcome.SLOWER),
        (Status.INCORRECT, (), Outcome.WRONG),
        (Status.REFUSED, (), Outcome.REFUSED),
        (Status.COMPILED, (), Outcome.COMPILED),
        (Status.EMULATED, (), Outcome.EMULATED),
        (None, (), Outcome.NOT_JUDGED),
    ],
)
def test_a_sample_goes_by_its_interval(status: Status | None, speedup: tuple[float, ...], expected: Outcome) -> None:
    assert outcome_of(status, *speedup) is expected


def test_without_an_interval_the_estimate_decides() -> None:
    assert [outcome_of(Status.FAST, 1.1), outcome_of(Status.FAST, 1.0), outcome_of(Status.SLOW, 0.9)] == [
        Outcome.FASTER, Outcome.ON_PAR, Outcome.SLOWER,
    ]  # fmt: skip
    with pytest.raises(ValueError, match="speed-up"):
        outcome_of(Status.FAST)


def test_a_problem_is_what_its_fastest_correct_sample_is() -> None:
    wrong, refused, open_ = One(Status.INCORRECT), One(Status.REFUSED), One()
    slower, on_par = One(Status.SLOW, (0.5, 0.4, 0.6)), One(Status.FAST, (1.02, 0.9, 1.1))
    assert problem_outcome([slower, wrong, on_par]) is Outcome.ON_PAR
    assert problem_outcome([wrong, refused]) is Outcome.REFUSED
    assert problem_outcome([wrong, One(Status.COMPILED)]) is Outcome.COMPILED
    assert problem_outcome([wrong, open_]) is Outcome.WRONG
    assert problem_outcome([open_]) is Outcome.NOT_JUDGED
    assert problem_outcome([]) is Outcome.NOT_JUDGED


def test_the_best_sample_is_the_first_of_equals_and_never_one_that_is_not_correct() -> None:
    first, second = (One(Status.FAST, (1.5, low, 1.6)) for low in (1.4, 1.45))
    assert best_of([One(Status.SLOW, (0.9, 0.8, 0.95)), first, second, One(Status.REFUSED)]) is first
    assert best_of([One(), One(Status.INCORRECT), One(Status.COMPILED)]) is None


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (None, set()),
        (Status.FAST, {"judged", "correct", "solved"}),
        (Status.SLOW, {"judged", "correct"}),
        (Status.INCORRECT, {"judged"}),
        (Status.REFUSED, {"judged", "refused"}),
        (Status.COMPILED, {"compiled"}),
    ],
)
def test_what_a_status_says_of_a_sample(status: Status | None, words: set[str]) -> None:
    every = ("judged", "compiled", "correct", "refused", "solved")
    assert {word for word in every if getattr(One(status), word)} == words


def test_each_class_looks_different() -> None:
    for look in ("label", "sign", "style"):
        assert len({getattr(outcome, look) for outcome in Outcome}) == len(Outcome)


def test_on_an_emulated_gpu_a_correct_sample_solves_and_the_compilers_findings_decide() -> None:
    spills, first, second = One(Status.EMULATED, findings=2), One(Status.EMULATED), One(Status.EMULATED)
    assert first.correct and first.solved and first.judged
    assert best_of([One(Status.INCORRECT), spills, first, second]) is first
    assert problem_outcome([One(Status.REFUSED), spills]) is Outcome.EMULATED


def test_what_was_timed_beside_other_work_is_of_no_class_by_its_interval() -> None:
    fast, slow = One(Status.FAST, (9.0, 8.0, 10.0), unsettled=True), One(Status.SLOW, (0.5, 0.4, 0.6), unsettled=True)
    assert fast.outcome is slow.outcome is problem_outcome([fast, slow]) is Outcome.UNSETTLED
    assert fast.solved and not slow.solved, "exit codes go by the estimate"
    settled = One(Status.SLOW, (0.9, 0.8, 0.95))
    assert best_of([fast, settled]) is settled, "a speed-up that nothing supports is not the best"
    assert One(Status.INCORRECT, unsettled=True).outcome is Outcome.WRONG
