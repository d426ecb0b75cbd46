"""Problems are recognised by what they compute, not by their names."""

from __future__ import annotations

import pytest

from hkbench.experience.facts import likeness, traits
from hkbench.records import GraphFacts, OperatorClass, ProblemFacts, SizeSet, TensorFact


def facts(
    *, argument: str = "x", rows: int = 64, dtype: str = "float32", operators: dict[str, int] | None = None
) -> ProblemFacts:
    tensor = TensorFact(name=argument, shape=(rows, 64), dtype=dtype, strides=(64, 1))
    calls = operators or {"relu": 1}
    known = {"mm": OperatorClass.MATMUL, "sum": OperatorClass.REDUCTION}
    classes: dict[OperatorClass, int] = {}
    for name, count in calls.items():
        one = known.get(name, OperatorClass.ELEMENTWISE)
        classes[one] = classes.get(one, 0) + count
    graph = GraphFacts(
        operators=calls, classes=classes, steps=1, product_flops=0, other_flops=0, bytes=8, intensity=0.0
    )
    return ProblemFacts(
        sizes=SizeSet.CPU, inputs=(tensor,), init_inputs=(), outputs=(tensor,), parameters=(), graph=graph
    )


def test_the_names_of_arguments_do_not_count() -> None:
    assert traits(facts()).digest == traits(facts(argument="input")).digest


@pytest.mark.parametrize("other", [facts(rows=65), facts(dtype="bfloat16"), facts(operators={"gelu": 1})])
def test_shapes_dtypes_and_operators_do(other: ProblemFacts) -> None:
    assert traits(facts()).digest != traits(other).digest


def test_a_likeness_falls_with_size_then_dtype_then_operators() -> None:
    one = traits(facts())
    others = [facts(), facts(rows=4096), facts(dtype="bfloat16"), facts(operators={"relu": 1, "sum": 3})]
    found = [likeness(one, traits(other)) for other in others]
    assert found[0] == 1.0
    assert found == sorted(found, reverse=True)
    assert likeness(one, traits(facts(operators={"mm": 1}))) == 0.0


def test_what_could_not_be_traced_is_like_nothing() -> None:
    untraced = traits(facts().model_copy(update={"graph": None}))
    assert likeness(untraced, untraced) == 0.0
