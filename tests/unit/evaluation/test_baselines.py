"""The candidate's speed-up over a further baseline, and which one is the fastest."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hkbench.evaluation.baselines import quotient
from hkbench.records import BaselineName, EvaluationSettings, Interval


def test_errors_of_a_quotient_add_in_quadrature() -> None:
    found = quotient(Interval(value=6.0, low=5.0, high=7.0), Interval(value=2.0, low=2.0, high=2.0))
    assert (found.value, found.low, found.high) == pytest.approx((3.0, 2.5, 3.5))
    both = quotient(Interval(value=6.0, low=5.0, high=7.0), Interval(value=2.0, low=1.9, high=2.1))
    assert both.low < found.low < found.high < both.high
    assert both.low > 5.0 / 2.1, "not as wide as the worst of both"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("eager", ()),
        ("best,compile", (BaselineName.COMPILE, BaselineName.BEST)),
        ("eager,compile", (BaselineName.COMPILE,)),
    ],
)
def test_eager_is_always_timed(text: str, names: tuple[BaselineName, ...]) -> None:
    assert EvaluationSettings(baseline=text).further_baselines == names


def test_an_unknown_baseline_is_refused() -> None:
    with pytest.raises(ValidationError, match="quick"):
        EvaluationSettings(baseline="eager,quick")
