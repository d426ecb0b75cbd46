"""The divisibility table, on made-up shapes and on the problems' own."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from prompts_examples import problems
from prompts_samples import MI355X, PROMPTS, context

from hkbench.analysis.facts import problem_facts
from hkbench.problems import find_problems, problems_root
from hkbench.prompts import load_prompts, render
from hkbench.prompts.context import Dialect
from hkbench.prompts.figures import contiguous, tensors
from hkbench.prompts.products import product_form, reads_rows_of_b
from hkbench.prompts.tiles import ROW_OF_A_WAVE, TILES, describe_plan, row_plans, tile_table
from hkbench.records import ProblemFacts, SizeSet, TensorFact

DIALECTS: tuple[Dialect, ...] = ("cdna3", "cdna4")
OWN = [pytest.param(facts, id=one.name) for one, facts in problems()]


def tensor(name: str, *shape: int, dtype: str = "bfloat16", strides: tuple[int, ...] | None = None) -> TensorFact:
    return TensorFact(name=name, shape=shape, dtype=dtype, strides=strides or contiguous(shape))


def made(
    *inputs: TensorFact, outputs: Sequence[TensorFact] = (), parameters: Sequence[TensorFact] = ()
) -> ProblemFacts:
    return ProblemFacts(
        sizes=SizeSet.FULL, inputs=inputs, init_inputs=(), outputs=tuple(outputs), parameters=tuple(parameters)
    )


def rows_of(table: list[str]) -> dict[str, tuple[str, str, str]]:
    """Size -> (dimensions, tiles, rest) of the table's lines."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table if line.startswith("|")]
    return {cell[0]: (cell[1], cell[2], cell[3]) for cell in cells[2:]}


def test_a_size_says_what_divides_it_and_what_to_do_with_the_rest() -> None:
    facts = made(tensor("x", 4096, 1000), parameters=[tensor("weight", 1000)], outputs=[tensor("output", 4096, 48)])
    table = rows_of(tile_table(facts, "cdna4"))
    assert table["4096"] == ("x[0], output[0]", "16 32 64 128 256", "none")
    assert table["1000"] == (
        "x[1], weight[0]", "none", "pad to 1008 (16) or 1024 (64), or the last 8 after 992 in plain HIP",
    )  # fmt: skip
    dimensions, fitting, rest = table["48"]
    assert (dimensions, fitting) == ("output[1]", "16")
    assert rest.startswith("pad to 64 for flat vectors")
    assert "as K `rt_32x16_s`" in rest
    assert "rt_" not in rows_of(tile_table(facts, "cdna3"))["48"][2]


def test_sizes_below_a_tile_share_a_line_and_ones_have_none() -> None:
    table = rows_of(tile_table(made(tensor("weight", 64, 1, 3, 5)), "cdna3"))
    assert list(table) == ["3, 5"]
    assert table["3, 5"][0] == "weight[2], weight[3]"


def test_many_sizes_are_cut_and_the_awkward_ones_come_first() -> None:
    several = [tensor(f"t{size}", 64 * size + size % 2, 16) for size in range(2, 14)]
    table = tile_table(made(*several), "cdna4")
    assert any("more sizes" in line for line in table)
    assert len(table) <= 12
    assert all(int(size) % 64 for size in list(rows_of(table))[:-1])


def test_the_flat_view_counts_its_tail() -> None:
    facts = made(tensor("x", 1000, 1001), tensor("y", 1000, 1001))
    tail = 1001000 % 512
    notes = tile_table(facts, "cdna3")
    assert (
        f"- Seen flat: x, y: 1001000 elements, {1001000 // 512} vectors of 512, the last {tail} in plain HIP." in notes
    )


@pytest.mark.parametrize(
    ("fact", "says"),
    [
        (tensor("i", 64, 64, dtype="int64"), "No tile type: i (int64)"),
        (tensor("t", 64, 128, strides=(1, 64)), "Not contiguous: t;"),
        (tensor("d", 2, 2, 16, 64, 64), "More than 4 dimensions: d;"),
        (tensor("large", 32768, 32768, dtype="float32"), "Too large for one `gl` (32-bit counts): large;"),
        (tensor("large", 65536, 32768), "Too large for one `gl` (32-bit counts): large;"),
    ],
)
def test_what_tiles_cannot_take_is_said(fact: TensorFact, says: str) -> None:
    assert any(line.startswith(f"- {says}") for line in tile_table(made(fact), "cdna4"))
    assert not any(line.startswith(f"- {says}") for line in tile_table(made(tensor("x", 64, 64)), "cdna4"))


@pytest.mark.parametrize(
    ("dtype", "length", "shape"),
    [  # length -> (padded, vector, pieces, waves, parts, held)
        ("bfloat16", 128, (128, 128, 1, 1, 1, 1)),
        ("float32", 2048, (2048, 256, 8, 1, 1, 8)),
        ("bfloat16", 4096, (4096, 512, 8, 2, 1, 4)),
        ("float32", 32000, (32000, 256, 125, 16, 1, 8)),
        ("bfloat16", 3001, (3072, 512, 6, 2, 1, 3)),
        ("float32", 131072, (131072, 256, 512, 16, 4, 8)),
    ],
)
def test_rows_are_cut_for_registers(dtype: str, length: int, shape: tuple[int, ...]) -> None:
    (plan,) = row_plans(made(tensor("x", 8, length, dtype=dtype)))
    assert (plan.padded, plan.vector, plan.pieces, plan.waves, plan.parts, plan.held) == shape


def test_a_plan_reads_in_the_words_of_its_dialect() -> None:
    (short,) = row_plans(made(tensor("x", 8, 1024)))
    assert describe_plan(short, "cdna3") == "Rows of 1024: one wave holds a row, in `rv_fl<512> v[2]`."
    (uneven,) = row_plans(made(tensor("x", 8, 32000, dtype="float32")))
    text = describe_plan(uneven, "cdna4")
    assert "16 waves share a row, each `rv_naive<float, 256> v[8]` at piece `warpid() * 8 + i` of 125" in text
    assert "(pieces from 125 on: no load, the neutral value)" in text
    (ragged,) = row_plans(made(tensor("x", 8, 100)))
    assert "pad to 128 with the neutral value" in describe_plan(ragged, "cdna4")
    assert "or take the last 36 after 64 in plain HIP" in describe_plan(ragged, "cdna4")
    (endless,) = row_plans(made(tensor("x", 8, 1 << 20)))
    assert "in 32 parts one after the other: statistics in a first pass" in describe_plan(endless, "cdna4")


def check(facts: ProblemFacts) -> None:
    """The table of any problem: short, complete up to its limit, and right by arithmetic."""
    sizes = {size for fact in (*tensors(facts.inputs), *facts.parameters, *tensors(facts.outputs))
             for size in fact.shape[-2:] if size > 1}  # fmt: skip
    for dialect in DIALECTS:
        table = tile_table(facts, dialect)
        assert len(table) <= 13
        listed = rows_of(table)
        cut = any("more sizes" in size for size in listed)
        found = {int(size) for key in listed if "more" not in key for size in key.split(", ")}
        assert found <= sizes
        assert cut or found == sizes
        for size, (_, fitting, rest) in listed.items():
            if "," in size or "more" in size or int(size) < TILES[0]:
                continue
            assert fitting.split() == [str(tile) for tile in TILES if int(size) % tile == 0] or fitting == "none"
            assert (rest == "none") == (int(size) % 64 == 0)
        for plan in row_plans(facts):
            assert plan.padded == plan.pieces * plan.vector >= plan.length > plan.padded - plan.vector
            assert plan.held * plan.vector <= ROW_OF_A_WAVE
            assert plan.held * plan.waves * plan.parts >= plan.pieces
            assert (plan.waves > 1) == (plan.padded > ROW_OF_A_WAVE)
            assert describe_plan(plan, dialect).startswith(f"Rows of {plan.length}")


@pytest.mark.parametrize("facts", OWN)
def test_the_shipped_problems_at_their_own_sizes(facts: ProblemFacts) -> None:
    check(facts)


@pytest.mark.skipif(not os.environ.get("KERNELBENCH_DIR"), reason="KERNELBENCH_DIR names no checkout of KernelBench")
@pytest.mark.filterwarnings("ignore")
def test_kernelbench_level_1_at_its_own_sizes() -> None:
    found = find_problems(problems_root(None, os.environ), 1)
    assert len(found) == 100
    large = []
    for one in found:
        facts = problem_facts(one, SizeSet.FULL)
        check(facts)
        if any("Too large" in line for line in tile_table(facts, "cdna4")):
            large.append(one.name)
    assert "89_cumsum" in large  # 32768 x 32768 fp32 is 4 GiB to the byte
    assert "19_ReLU" not in large  # 4096 x 393216 fp32: more than 4 GiB, by more than any tile spans


def test_only_hipkittens_prompts_have_the_table() -> None:
    book = load_prompts(PROMPTS)
    one, facts = problems()[0]
    known = context(one, "hipkittens", MI355X).model_copy(update={"facts": facts})
    lines = tile_table(facts, "cdna4")
    assert all(line in render(book, "elementwise.txt", known).text for line in lines)
    hip = render(book, "elementwise.txt", known.model_copy(update={"backend": "hip", "dialect": None})).text
    assert not any(line in hip for line in lines if line)


@pytest.mark.parametrize(
    ("name", "form", "nearer_nn"),
    [
        ("17_Matmul_square_bf16", None, True),
        ("18_Matmul_tall_skinny_fp16", "NN", True),
        ("19_Matmul_NT_ragged_bf16", "NT", False),
        ("20_Matmul_TN_fp32", None, False),
        ("22_Batched_matmul_bf16", "NN", True),
        ("38_Matmul_bias_GELU_bf16", "NT", False),
        ("1_Scaled_residual_bf16", None, True),
    ],
)
def test_the_form_of_a_product_is_what_its_shapes_say(name: str, form: str | None, nearer_nn: bool) -> None:
    one, facts = next(known for known in problems() if known[0].name == name)
    assert product_form(facts) == form
    assert reads_rows_of_b(facts, one.source) is nearer_nn


def test_transposed_operands_have_forms_of_their_own() -> None:
    out = [tensor("output", 32, 64)]
    assert product_form(made(tensor("a", 16, 32), tensor("b", 16, 64), outputs=out)) == "TN"
    assert product_form(made(tensor("a", 16, 32), tensor("b", 64, 16), outputs=out)) == "TT"


@pytest.mark.parametrize(
    ("problem", "template", "kernel"),
    [
        ("17_Matmul_square_bf16", "gemm_hipkittens.txt", "mma_AB(c, a, b, c)"),
        ("19_Matmul_NT_ragged_bf16", "gemm_hipkittens.txt", "mma_ABt(c, a, b, c)"),
        ("22_Batched_matmul_bf16", "batched_gemm.txt", "mma_AB(c, a, b, c)"),
        ("38_Matmul_bias_GELU_bf16", "gemm_fused_hipkittens.txt", "add_col(c, c, bias)"),
        ("5_Scaled_masked_softmax_fp32", "row_reduction.txt", "One wave standardises one row"),
        ("15_LayerNorm_bf16", "row_reduction.txt", "A block standardises a row"),
        ("34_CrossEntropy_Loss_fp32", "loss.txt", "A block standardises a row"),
        ("23_Attention_full_bf16", "attention.txt", "K Q^T"),
        ("3_GELU_tanh_fp16", "elementwise.txt", "softsign_columns"),
    ],
)
def test_the_skeleton_fits_the_problem(problem: str, template: str, kernel: str) -> None:
    book = load_prompts(PROMPTS)
    one, facts = next(known for known in problems() if known[0].name == problem)
    known = context(one, "hipkittens", MI355X).model_copy(update={"facts": facts})
    assert book.choose(problem, "hipkittens") == template
    assert kernel in render(book, template, known).text
