"""What HipKittens' cards say exists is accepted by its headers, and what they say is refused is refused.

The headers are those of support.kittens. Only the device side is parsed; nothing is
run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support.compilers import hip_or_skip
from support.kittens import kittens_or_skip, kittens_root

from hkbench.toolchain.hipkittens import WITH_CARD, Dialect, read_checkout
from hkbench.toolchain.process import ToolResult, run_tool

pytestmark = [pytest.mark.hipcc, pytest.mark.slow]

PROMPTS = Path(__file__).resolve().parents[2] / "prompts"
Parse = Callable[[str], ToolResult]

#: Where the row of a form names shapes: (of A and B for a D of 16x16, of A and B for a D of 32x32), as in the card.
_FORM = re.compile(
    r"^ *\| `(mma_\w+)(?:\(D, A, B, C\))?` \| \[\w, \w\] `(\w+)` \| \[\w, \w\] `(\w+)` \|(.*)$", re.MULTILINE
)
_TILES = {
    Dialect.CDNA3: "rt_fl<64, 64> t, u; rt_fl<64, 64, col_l> c; rt_bf<64, 64> b; rv_fl<256> v, w;",
    Dialect.CDNA4: "rt_fl<64, 64> t, u; rt_fl<64, 64, col_l> c; rt_bf<64, 64> b; rv_naive<float, 256> v, w;",
}
_MAPS = """
zero(t); pos_infty(t); neg_infty(t); exp(t, t); exp2(t, t); log(t, t); log2(t, t); abs(t, t); relu(t, t); copy(b, t);
add(t, t, u); sub(t, t, u); mul(t, t, u); div(t, t, u); max(t, t, u); min(t, t, u); mul(t, t, 2.0f); add(t, t, 1.0f);
zero(v); exp(v, v); log2(v, v); abs(v, v); relu(v, v); copy(w, v); add(v, v, w); max(v, v, w); mul(v, v, 2.0f);
decltype(t)::col_vec one_a_row; decltype(t)::row_vec one_a_column;
row_max(one_a_row, t); row_sum(one_a_row, t); row_min(one_a_row, t); row_prod(one_a_row, t);
row_sum(one_a_row, t, one_a_row);
col_max(one_a_column, t); col_sum(one_a_column, t); col_min(one_a_column, t); col_prod(one_a_column, t);
add_row(t, t, one_a_row); sub_row(t, t, one_a_row); mul_row(t, t, one_a_row); div_row(t, t, one_a_row);
add_col(t, t, one_a_column); sub_col(t, t, one_a_column); mul_col(t, t, one_a_column); div_col(t, t, one_a_column);
broadcast_row(t, one_a_row); broadcast_col(t, one_a_column);
float s; sum(s, v); kittens::max(s, v); (void)s;
tril(c, c, 3, 0.0f); triu(c, c, -3, -INFINITY); tril(t, t, 3, 0.0f); triu(t, t, 3, 0.0f);
left_fill(t, t, 3, 0.0f); right_fill(t, t, 3, 0.0f); upper_fill(c, c, 3, 0.0f); lower_fill(c, c, 3, 0.0f);
"""
_OWN = {
    Dialect.CDNA3: "one(t); one(v); make_causal(t, t, 0.0f);",
    Dialect.CDNA4: "ones(t); ones(v); make_causal(c, c, 0.0f); rt_fl<64, 64, col_l> turned; transpose(turned, t);"
    "gelu(t, t); dgelu(t, t);",
}
#: Waits, addresses and scheduling as the cards have them.
_PIPELINE = {
    Dialect.CDNA3: """
    float4 buffer[64 * 64 * sizeof(bf16) / (16 * 256)] = {};
    store_register_buffer_to_shared<256>(tile, buffer);
    """,
    Dialect.CDNA4: """
    uint32_t off[64 * 64 * sizeof(bf16) / (16 * 256)];
    group<4>::prefill_swizzled_offsets(tile, g.a, off);
    group<4>::load(tile, g.a, {0, 0, 1, 2}, off);
    const auto srsrc = make_srsrc(&g.a[{0, 0, 0, 0}], 4096);
    group<4>::load(tile, g.a, {0, 0, 1, 2}, off, srsrc, &g.a[{0, 0, 0, 0}], 0);
    __builtin_amdgcn_sched_group_barrier(0x8, 4, 0);
    """,
}
_FP8 = """
    auto &bytes = al.allocate<st<fp8e4m3, 128, 128, st_16x128_s>>();
    rt_fp8e4m3<64, 128> x, y;
    rt_fl<64, 64, col_l, rt_16x16_s> d;
    load(x, subtile_inplace<64, 128>(bytes, {0, 0}));
    load(y, subtile_inplace<64, 128>(bytes, {1, 0}));
    mma_ABt(d, x, y, d);
"""
_MEMORY = """
load(t, g.a, {0, 0, 1, 2}); store(g.a, t, {0, 0, 1, 2}); load(v, g.a, {0, 0, 1, 2}); store(g.a, v, {0, 0, 1, 2});
load<1>(t, g.a, {0, 1, 0, 2}); store<1>(g.a, t, {0, 1, 0, 2});
group<4>::load(tile, g.a, {0, 0, 1, 2}); group<4>::load<1, false>(tile, g.a, {0, 1, 0, 2});
load(operand, tile); store(tile, operand);
group<4>::store(g.a, tile, {0, 0, 1, 2});
"""
_SHARED = {
    Dialect.CDNA3: "auto &tile = al.allocate<st_bf<64, 64>>(); rt_bf<64, 64> operand;",
    Dialect.CDNA4: "auto &tile = al.allocate<st_bf<64, 64, st_16x32_s>>(); rt_bf<64, 64, row_l, rt_16x32_s> operand;",
}
#: What stands in a card as refused, with what the compiler says.
_REFUSED = {
    Dialect.CDNA3: [
        ("ones(t);", "ones"), ("rt_bf<64, 64, row_l, rt_16x32_s> x;", "rt_16x32_s"),
        ("make_causal(c, c, 0.0f);", "make_causal"), ("gelu(t, t);", "gelu"),
        ("rt_fl<64, 64, col_l> turned; transpose(turned, t);", "transpose"),
        ("decltype(t)::row_vec r; float s; sum(s, r);", "reduce is not currently supported"),
    ],
    Dialect.CDNA4: [
        ("one(t);", "one"), ("st_bf<64, 64> x;", "too few template arguments"),
        ("make_causal(t, t, 0.0f);", "make_causal"),
        ("mma_ABt(c, b, b, c);", "Unsupported shape combination"), ("group<4>::sync();", "sync"),
        ("group<4>::load<1>(al.allocate<st_bf<64, 64, st_16x32_s>>(), g.a, {0, 0, 0, 0});", "assume_aligned"),
    ],
}  # fmt: skip


def card(dialect: Dialect) -> str:
    return (PROMPTS / f"_hipkittens_{dialect}.txt").read_text()


@pytest.fixture(params=WITH_CARD)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    found: Dialect = request.param
    kittens_or_skip(found, f"the card of {found} was not checked")
    return found


@pytest.fixture
def parse(dialect: Dialect, tmp_path: Path) -> Parse:
    """Parses a kernel with this body; `t u c b v w` are tiles and vectors, `g.a` is global memory."""
    hip = hip_or_skip(f"the card of {dialect} was not checked")
    tree = read_checkout(kittens_root(dialect))
    flags = (*tree.compile_flags(dialect, hip), "--cuda-device-only", "-fsyntax-only", "-ferror-limit=0")

    def parsed(body: str) -> ToolResult:
        source = tmp_path / "card.hip"
        source.write_text(
            '#include "kittens.cuh"\nusing namespace kittens;\nstruct arguments { gl<bf16, -1, -1, -1, -1> a; };\n'
            "__global__ void card(const arguments g) {\nextern __shared__ alignment_dummy __shm[];\n"
            f"shared_allocator al((int*)&__shm[0]);\n{_TILES[dialect]}\n{body}\n}}\n"
        )
        command = hip.compile_command(source, tmp_path / "card.o", dialect.arch, flags, remarks=False)
        return run_tool(command, tmp_path, 120)

    return parsed


def test_maps_reductions_masks_and_memory_operations_exist(dialect: Dialect, parse: Parse) -> None:
    done = parse(f"{_MAPS}{_OWN[dialect]}{_SHARED[dialect]}{_MEMORY}")
    assert done.returncode == 0, done.output


def test_waits_addresses_and_fp8_are_as_the_card_says(dialect: Dialect, parse: Parse) -> None:
    done = parse(f"{_SHARED[dialect]}{_PIPELINE[dialect]}{_FP8 if dialect is Dialect.CDNA4 else ''}")
    assert done.returncode == 0, done.output


def test_the_batch_of_three_dimensions_is_the_second_coordinate() -> None:
    """What the binding makes of [batch, rows, columns], and what the template for batched products says of it."""
    assert "`{0, batch, row, k}`" in (PROMPTS / "batched_gemm.txt").read_text()


def test_the_products_of_the_table_are_accepted(dialect: Dialect, parse: Parse) -> None:
    statements = []
    forms = _FORM.findall(card(dialect))
    assert [form[0] for form in forms] == ["mma_AB", "mma_ABt", "mma_AtB", "mma_AtBt"]
    for name, layout_a, layout_b, rest in forms:
        if dialect is Dialect.CDNA3:
            operands = [("", "", "")]
        else:
            columns = rest.strip(" |").split("|")
            operands = [
                (f", {d}", f", {pair[0]}", f", {pair[-1]}")
                for d, column in zip(("rt_16x16_s", "rt_32x32_s"), columns, strict=True)
                for pair in _pairs(column)
            ]
        for d, a, b in operands:
            statements.append(
                f"{{ rt_fl<64, 64, col_l{d}> d; rt_bf<64, 64, {layout_a}{a}> x; rt_bf<64, 64, {layout_b}{b}> y; "
                f"{name}(d, x, y, d); }}"
            )
    assert len(statements) == (4 if dialect is Dialect.CDNA3 else 9)
    done = parse("\n".join(statements))
    assert done.returncode == 0, done.output


def _pairs(column: str) -> list[list[str]]:
    """The shapes of (A, B) in a cell: "both `s`", "both `s` or both `t`", or "`s`, `t`"."""
    shapes = re.findall(r"`(rt_\w+)`", column)
    return [[shape] for shape in shapes] if "both" in column else [shapes]


def test_what_is_refused_is_refused(dialect: Dialect, parse: Parse) -> None:
    for statement, says in _REFUSED[dialect]:
        done = parse(statement)
        assert done.returncode == 1, statement
        assert says in done.output, statement


def test_the_cards_name_what_is_checked_here(dialect: Dialect) -> None:
    text = card(dialect) + (PROMPTS / "_backend_hipkittens.txt").read_text()
    called = set(re.findall(r"\b([a-z]\w*)\(", _MAPS + _OWN[dialect] + _MEMORY)) - {"decltype"}
    shown = {name for name in called if re.search(rf"\b{name}\b", text)}
    assert "`*_col` take a `row_vec`" in text
    assert called - shown == {"add_col", "sub_col", "mul_col", "div_col"}
