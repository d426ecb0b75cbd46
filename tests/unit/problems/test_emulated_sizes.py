"""What the shipped problems have smaller for an emulated GPU: rows, tokens, batch and heads, and never a width.

A kernel may have a width in its types: columns that a wave holds in registers, the head's dimension, the summed
dimension of a product. Seen from its tensors, a width is what lies last in memory.
"""

from __future__ import annotations

import math

import pytest

from hkbench.analysis.facts import problem_facts
from hkbench.problems import SHIPPED, find_problems
from hkbench.records import Problem, ProblemFacts, SizeSet, TensorFact

PROBLEMS = find_problems(SHIPPED, 1)
NAMES = {"rows", "tokens", "batch", "heads", "query_heads", "kv_heads", "positions", "queries", "m"}
#: Constants by problem that count rows there, by another name than the others'.
OTHER_NAMES = {17: {"n"}, 19: {"n"}, 20: {"n"}, 27: {"length"}, 37: {"vocabulary"}}
#: Problems with a tensor whose last dimension is one of rows nevertheless, and that dimension.
ROWS_LIE_LAST = {
    17: "both matrices are square: n is rows, columns and what is summed",
    19: "n counts the rows of the second factor, as it is stored",
    20: "both factors are stored with what is summed outermost: m and n are alike",
    27: "a sequence's positions lie last, and no sum goes along them",
    37: "the input is one token for each position",
}
TILE = 256
LOWER_TILES = {8: 128}  #: without matrix instructions of its dtype a product takes the host too long at 256 rows
LEAST_WORKGROUPS = 4
THREADS = 256  #: of a workgroup
LEAST_RESULTS = LEAST_WORKGROUPS * 64

per_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)


def tensors(facts: ProblemFacts) -> list[TensorFact]:
    found = (*facts.inputs, *facts.parameters, *facts.outputs)
    return [fact for fact in found if isinstance(fact, TensorFact) and len(fact.shape) > 1]


@per_problem
def test_only_rows_tokens_batch_and_heads_are_smaller(problem: Problem) -> None:
    assert problem.emulated_sizes is not None
    allowed = NAMES | OTHER_NAMES.get(problem.number, set())
    assert set(problem.emulated_sizes) <= allowed
    full, emulated = (tensors(problem_facts(problem, sizes)) for sizes in (SizeSet.FULL, SizeSet.EMULATED))
    assert [one.name for one in full] == [one.name for one in emulated]
    changed = [one.name for one, other in zip(full, emulated, strict=True) if one.shape[-1] != other.shape[-1]]
    assert bool(changed) == (problem.number in ROWS_LIE_LAST), changed
    assert all(
        after <= before
        for one, other in zip(full, emulated, strict=True)
        for before, after in zip(one.shape, other.shape, strict=True)
    )


@per_problem
def test_tiles_fit_as_they_do_at_full_size(problem: Problem) -> None:
    """Whole tiles stay whole, ragged ends ragged, and a batch or heads are never one: their strides would not count."""
    space: dict[str, int] = {}
    exec("\n".join(line for line in problem.source.splitlines() if line[:1].islower() and " = " in line), {}, space)
    assert problem.emulated_sizes is not None
    for name, size in problem.emulated_sizes.items():
        if name in ("batch", "heads", "query_heads", "kv_heads"):
            assert 2 <= size < space[name]
            continue
        highest = LOWER_TILES.get(problem.number, TILE)
        assert highest <= size < space[name]
        for tile in (2, 16, 64, highest):
            assert (size % tile == 0) == (space[name] % tile == 0), (name, tile)


@per_problem
def test_several_workgroups_have_something_to_do(problem: Problem) -> None:
    facts = problem_facts(problem, SizeSet.EMULATED)
    results = [math.prod(fact.shape) for fact in facts.outputs if isinstance(fact, TensorFact)]
    read = [math.prod(fact.shape) for fact in (*facts.inputs, *facts.parameters) if isinstance(fact, TensorFact)]
    assert max(results) >= LEAST_RESULTS, "a workgroup or a wave has a result of its own, or 64 lanes have"
    assert max(read) >= LEAST_WORKGROUPS * THREADS * 64


def test_the_ratio_of_query_heads_to_key_heads_is_that_of_the_full_problem() -> None:
    (problem,) = (one for one in PROBLEMS if one.name == "25_Attention_GQA_causal_bf16")
    assert problem.emulated_sizes is not None
    assert problem.emulated_sizes["query_heads"] == 4 * problem.emulated_sizes["kv_heads"]
