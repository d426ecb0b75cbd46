"""How much later inputs are in place for one side than for the other."""

from __future__ import annotations

import itertools

import pytest

from hkbench.evaluation.leads import LEADS, MAX_LATER, Leads


def test_the_first_lead_after_a_call_does_not_count() -> None:
    leads, took = Leads(), itertools.chain([9.0], itertools.repeat(1.5))
    leads.compare(lambda: 1.0, lambda: next(took))
    assert leads.later(1000.0) == pytest.approx(0.5)


def test_each_side_is_measured_as_often_in_a_drawn_order() -> None:
    asked: list[str] = []

    def lead(side: str) -> float:
        asked.append(side)
        return 1.0

    leads = Leads()
    orders = set[tuple[str, ...]]()
    for _ in range(100):
        asked.clear()
        leads.compare(lambda: lead("baseline"), lambda: lead("candidate"))
        orders.add(tuple(asked[1:]))
        assert asked[1:].count("baseline") == asked[1:].count("candidate") == LEADS
    assert len(orders) > 5


@pytest.mark.parametrize(("lead", "later"), [(3.0, MAX_LATER * 10.0), (0.1, -MAX_LATER * 10.0), (1.0, 0.0)])
def test_a_time_is_corrected_by_a_small_share_at_most(lead: float, later: float) -> None:
    leads = Leads()
    leads.compare(lambda: 1.0, lambda: lead)
    assert leads.later(10.0) == pytest.approx(later)
    assert leads.later(-1.0) == 0.0  # a call as short as a null call


def test_without_the_evaluators_clock_nothing_is_corrected() -> None:
    leads = Leads()
    leads.compare(lambda: None, lambda: None)
    assert leads.later(10.0) == 0.0
