"""Conditions: all have to hold, and what is not known does not."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from hkbench.categories import Condition, Ridge, Rule, Situation, first, situation
from hkbench.records import GraphFacts, OperatorClass, ProblemFacts, SizeSet, TensorFact, Track

AT = Situation(
    stage=1, stage_name="tiles", correct=True, speedup=0.4, gain=1.1, roof=0.5, kernel_size=3, intensity=40.0,
    of_ridge=2.0, steps=2,
    contains=frozenset({OperatorClass.CONV, OperatorClass.ELEMENTWISE}), dtypes=frozenset({"float16"}), track=Track.OWN,
)  # fmt: skip
RIDGE = Ridge(full={"float16": 200.0}, cpu={"float16": 10.0})
HOLDS: list[dict[str, Any]] = [
    {"stage": 1}, {"stage_at_least": 1}, {"stage_name": "tiles"}, {"correct": True},
    {"speedup_below": 0.5}, {"speedup_at_least": 0.4}, {"gain_below": 1.2}, {"gain_at_least": 1.1},
    {"roof_below": 0.6}, {"roof_at_least": 0.5}, {"kernel_size_at_most": 3}, {"kernel_size_at_least": 3},
    {"intensity_below": 41.0}, {"intensity_at_least": 40.0}, {"of_ridge_below": 2.1}, {"of_ridge_at_least": 2.0},
    {"steps_at_most": 2}, {"steps_at_least": 2}, {"contains": "conv"}, {"contains": ["conv", "elementwise"]},
    {"contains_any": ["matmul", "conv"]}, {"lacks": ["matmul"]}, {"dtype": ["float32", "float16"]}, {"track": "own"},
]  # fmt: skip
FAILS: list[dict[str, Any]] = [
    {"stage": 2}, {"stage_at_least": 2}, {"stage_name": "limits"}, {"correct": False},
    {"speedup_below": 0.4}, {"speedup_at_least": 0.5}, {"gain_below": 1.1}, {"gain_at_least": 1.2},
    {"roof_below": 0.5}, {"roof_at_least": 0.6}, {"kernel_size_at_most": 2}, {"kernel_size_at_least": 4},
    {"intensity_below": 40.0}, {"intensity_at_least": 41.0}, {"of_ridge_below": 2.0}, {"of_ridge_at_least": 2.1},
    {"steps_at_most": 1}, {"steps_at_least": 3}, {"contains": "matmul"}, {"contains": ["conv", "matmul"]},
    {"contains_any": ["matmul", "pool"]}, {"lacks": ["conv", "matmul"]}, {"dtype": "float32"}, {"track": "any"},
]  # fmt: skip


@pytest.mark.parametrize("table", HOLDS, ids=str)
def test_what_holds(table: dict[str, Any]) -> None:
    assert Condition.model_validate(table).holds(AT)


@pytest.mark.parametrize("table", FAILS, ids=str)
def test_what_does_not(table: dict[str, Any]) -> None:
    assert not Condition.model_validate(table).holds(AT)


def test_every_field_is_tried() -> None:
    for tables in (HOLDS, FAILS):
        assert {key for table in tables for key in table} == set(Condition.model_fields)


@pytest.mark.parametrize(
    "table", [table for table in (*HOLDS, *FAILS) if not {"stage", "stage_at_least", "correct"} & set(table)], ids=str
)
def test_what_is_not_known_does_not_hold(table: dict[str, Any]) -> None:
    assert not Condition.model_validate(table).holds(Situation())


def test_of_a_kernel_that_was_only_compiled_nobody_knows_whether_it_is_correct() -> None:
    at = Situation(stage=2, correct=None)
    assert not Condition(correct=False).holds(at)
    assert not Condition(correct=True).holds(at)
    assert not Condition(roof_at_least=0.0).holds(at)
    assert Condition(stage=2).holds(at)


def test_without_a_correct_kernel_there_is_no_speed_up_to_compare() -> None:
    at = Situation(stage=2)
    assert Condition(correct=False).holds(at)
    assert not Condition(correct=False, speedup_below=1.0).holds(at)


@pytest.mark.parametrize("left_out", ["stage", "speedup_below", "kernel_size_at_most", "contains"])
def test_all_of_several_have_to_hold(left_out: str) -> None:
    table = {"stage": 1, "speedup_below": 0.5, "kernel_size_at_most": 3, "contains": "conv"}
    assert Condition.model_validate(table).holds(AT)
    wrong = {"stage": 2, "speedup_below": 0.1, "kernel_size_at_most": 1, "contains": "matmul"}
    assert not Condition.model_validate(table | {left_out: wrong[left_out]}).holds(AT)


def test_an_empty_condition_is_refused() -> None:
    with pytest.raises(ValidationError, match="would always hold"):
        Condition()


def test_the_first_rule_that_holds() -> None:
    rules = [Rule(when=Condition(stage=stage), why=str(number)) for number, stage in enumerate((2, 1, 1))]
    found = first(rules, AT)
    assert found is not None and found.why == "1"
    assert first(rules, Situation()) is None


def test_a_situation_from_facts() -> None:
    graph = GraphFacts(
        operators={"mm": 1, "relu": 1}, classes={OperatorClass.MATMUL: 1, OperatorClass.ELEMENTWISE: 1}, steps=2,
        product_dtype="float16", product_flops=900, other_flops=100, bytes=10, intensity=100.0,
    )  # fmt: skip
    facts = ProblemFacts(
        sizes=SizeSet.FULL, init_inputs=(), outputs=(), graph=graph,
        inputs=(TensorFact(name="x", shape=(4,), dtype="float16", strides=(1,)),),
        parameters=(TensorFact(name="w", shape=(4,), dtype="float32", strides=(1,)),),
    )  # fmt: skip
    at = situation(facts, RIDGE, stage=2, speedup=1.5, track=Track.ANY)
    assert at == Situation(
        stage=2, speedup=1.5, intensity=100.0, of_ridge=0.5, steps=2, track=Track.ANY,
        contains=frozenset({OperatorClass.MATMUL, OperatorClass.ELEMENTWISE}), dtypes=frozenset({"float16", "float32"}),
    )  # fmt: skip
    unknown = situation(facts.model_copy(update={"graph": None}), RIDGE)
    assert unknown == Situation(dtypes=frozenset({"float16", "float32"}))
    assert situation(facts.model_copy(update={"sizes": SizeSet.CPU}), RIDGE).of_ridge == 10.0
    emulated = facts.model_copy(update={"sizes": SizeSet.EMULATED})
    assert situation(emulated, RIDGE).of_ridge == 0.5
    lower = RIDGE.model_copy(update={"emulated": {"float16": 25.0}})
    assert situation(emulated, lower).of_ridge == 4.0
    unknown_dtype = graph.model_copy(update={"product_dtype": "float8_e5m2"})
    assert situation(facts.model_copy(update={"graph": unknown_dtype}), RIDGE).of_ridge is None
