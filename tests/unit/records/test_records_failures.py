"""Every kind of failure either refuses by a rule, and then says what to change, or explains itself."""

from __future__ import annotations

import pytest

from hkbench.records import (
    BEYOND_KERNELBENCH,
    DEMANDS,
    REFUSALS,
    Failure,
    FailureKind,
    Rule,
    Stage,
)

#: Kinds that break no rule: what a compiler, an exception, a signal, the values or the emulated device say is the
#: reason, and what to change depends on that.
SELF_EXPLAINED = frozenset(
    {
        FailureKind.NO_CODE,
        FailureKind.SYNTAX_ERROR,
        FailureKind.BUILD_ERROR,
        FailureKind.LOAD_ERROR,
        FailureKind.RUNTIME_ERROR,
        FailureKind.CRASH,
        FailureKind.NOT_FINITE,
        FailureKind.WRONG_VALUES,
        FailureKind.RACE,
        FailureKind.OUT_OF_BOUNDS,
        FailureKind.SHAPES,
        FailureKind.UNSUPPORTED,
        FailureKind.SLOW,
    }
)


@pytest.mark.parametrize("kind", FailureKind)
def test_every_kind_explains_itself_or_names_rule_and_change(kind: FailureKind) -> None:
    failure = Failure(stage=Stage.RUN, kind=kind, message="what happened")
    if kind in SELF_EXPLAINED:
        assert (failure.rule, failure.change) == (None, None)
        assert kind not in DEMANDS
        return
    assert failure.rule is not None
    assert failure.change is not None and failure.change[0].islower() and not failure.change.endswith(".")
    assert DEMANDS[kind].asks


def test_a_refusal_names_a_rule() -> None:
    assert set(DEMANDS) >= REFUSALS


def test_every_rule_refuses_something() -> None:
    assert {demand.rule for demand in DEMANDS.values()} == set(Rule)


def test_what_keeps_a_time_honest_is_asked_by_kernelbenchs_rules_too() -> None:
    kept = {
        Rule.FRESH_RESULTS,
        Rule.EXACT_FORM,
        Rule.NO_LEFTOVERS,
        Rule.OWN_KERNELS,
        Rule.CLEAN_LAUNCHES,
        Rule.CONFINED,
    }
    assert set(Rule) - kept == BEYOND_KERNELBENCH
