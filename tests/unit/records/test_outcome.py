"""The class of a verdict by its interval, and of a problem by its best sample."""

from __future__ import annotations

import pytest

from hkbench.records import Outcome, Status, outcome_of, problem_outcome


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
    wrong, refused = (Outcome.WRONG, None), (Outcome.REFUSED, None)
    assert problem_outcome([(Outcome.SLOWER, 0.5), wrong, (Outcome.ON_PAR, 1.02)]) is Outcome.ON_PAR
    assert problem_outcome([wrong, refused]) is Outcome.REFUSED
    assert problem_outcome([wrong, (Outcome.COMPILED, None)]) is Outcome.COMPILED
    assert problem_outcome([wrong, (Outcome.NOT_JUDGED, None)]) is Outcome.WRONG
    assert problem_outcome([(Outcome.NOT_JUDGED, None)]) is Outcome.NOT_JUDGED
    assert problem_outcome([]) is Outcome.NOT_JUDGED


def test_each_class_looks_different() -> None:
    for look in ("label", "sign", "style"):
        assert len({getattr(outcome, look) for outcome in Outcome}) == len(Outcome)
