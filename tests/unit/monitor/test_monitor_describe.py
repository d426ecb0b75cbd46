"""The end of a problem in one line."""

from __future__ import annotations

import pytest

from hkbench.monitor.describe import describe
from hkbench.records import ProblemClosed

CLOSED = ProblemClosed(time=0.0, problem="1_ReLU", solved=False, best=None, speedup=None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"solved": True, "speedup": 2.0}, "1_ReLU: solved, best 2.00x"),
        ({"speedup": 0.5}, "1_ReLU: not solved, best 0.50x"),
        ({}, "1_ReLU: not solved"),
        ({"compiled": True}, "1_ReLU: compiled, not measured"),
        ({"compiled": True, "error": "the disk is full"}, "1_ReLU: ended early: the disk is full"),
    ],
)
def test_what_became_of_a_problem(changes: dict[str, object], said: str) -> None:
    assert describe(CLOSED.model_copy(update=changes)) == said
