"""The HipKittens examples of the prompts, executed from their machine code and compared with NumPy in float64."""

from __future__ import annotations

import math
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.compilers import hip_or_skip
from support.emulated import Array, Floats, device_code, from_bf16, layout, run, to_bf16
from support.kittens import kittens_or_skip

from hkbench.analysis.tolerances import RTOL_BY_NAME
from hkbench.emulator.executor import Options
from hkbench.emulator.program import Program
from hkbench.toolchain.hipkittens import Dialect

PROMPTS = Path(__file__).resolve().parents[3] / "prompts"
EXAMPLES = sorted(PROMPTS.glob("_hipkittens_example_*_cdna[34].txt"))
EVERY_TIME = {"attention_cdna3", "rows_cdna4"}
RNG = np.random.default_rng(25)

#: grid, threads, LDS, arguments, arrays, the result and what it should be.
Case = tuple[tuple[int, ...], int, int, bytes, list[Array], Array, Floats]


def _bf16(*shape: int) -> Array:
    return to_bf16(RNG.standard_normal(shape))


def _no_bf16(*shape: int) -> Array:
    return to_bf16(np.zeros(shape))


def _elementwise(dialect: Dialect) -> Case:
    x, w = (RNG.standard_normal(shape).astype(np.float32) for shape in ((6, 512), (1, 512)))
    out = np.zeros_like(x)
    arguments = layout(x, 6, 512) + layout(w, 1, 512) + layout(out, 6, 512)
    wide = x.astype(np.float64)
    return (3,), 256, 0, arguments, [x, w, out], out, wide / (1 + abs(wide)) * w


def _rows(columns: int, a_block: int) -> Callable[[Dialect], Case]:
    def case(dialect: Dialect) -> Case:
        x, out = _bf16(8, columns), _no_bf16(8, columns)
        arguments = b"".join(layout(t, 8, columns, fixed=True) for t in (x, out)) + struct.pack("<f", 1e-5)
        wide = from_bf16(x)
        expected = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
        return (8 // a_block,), 256, 0, arguments, [x, out], out, expected

    return case


def _product(block: int, transposed: bool = True, tiles: int = 2) -> Callable[[Dialect], Case]:
    def case(dialect: Dialect) -> Case:
        m, n, k = 2 * block, block, 192
        a, b, c = _bf16(m, k), _bf16(n, k) if transposed else _bf16(k, n), _no_bf16(m, n)
        arguments = layout(a, m, k) + layout(b, *b.shape) + layout(c, m, n)
        expected = from_bf16(a) @ (from_bf16(b).T if transposed else from_bf16(b))
        lds = 128 * 64 * 2 * tiles * (2 if dialect is Dialect.CDNA4 else 1)
        grid, threads = ((2,), 512) if block == 256 else ((1, 2), 256)
        return grid, threads, lds, arguments, [a, b, c], c, expected

    return case


def _epilogue(dialect: Dialect) -> Case:
    x, weight, bias, out = _bf16(256, 128), _bf16(128, 128), _bf16(128), _no_bf16(256, 128)
    arguments = layout(x, 256, 128) + layout(weight, 128, 128) + layout(bias, 128) + layout(out, 256, 128)
    y = from_bf16(x) @ from_bf16(weight).T + from_bf16(bias)
    lds = 128 * 64 * 2 * (4 if dialect is Dialect.CDNA4 else 2)
    return (1, 2), 256, lds, arguments, [x, weight, bias, out], out, y / (1 + abs(y))


def _attention(dialect: Dialect) -> Case:
    columns = 64 if dialect is Dialect.CDNA3 else 128
    queries, keys = (1, 4, 256, columns), (1, 2, 256, columns)
    q, k, v, o = _bf16(*queries), _bf16(*keys), _bf16(*keys), _no_bf16(*queries)
    scale = 1 / math.sqrt(columns)
    arguments = b"".join(layout(t, *t.shape, fixed=True) for t in (q, k, v, o))
    arguments += struct.pack("<f", scale * math.log2(math.e))
    scores = np.einsum("bhqd,bhkd->bhqk", from_bf16(q), np.repeat(from_bf16(k), 2, 1)) * scale
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("bhqk,bhkd->bhqd", weights / weights.sum(-1, keepdims=True), np.repeat(from_bf16(v), 2, 1))
    lds = 2 * 32 * 64 * 2 if dialect is Dialect.CDNA3 else 4 * 64 * 128 * 2
    return (2, 4, 1), 256, lds, arguments, [q, k, v, o], o, expected


CASES: dict[str, Callable[[Dialect], Case]] = {
    "attention": _attention,
    "elementwise": _elementwise,
    "epilogue": _epilogue,
    "gemm": _product(128),
    "gemm_nn": _product(128, transposed=False),
    "pingpong": _product(256, tiles=4),
    "rows": _rows(2048, 4),
    "wide_rows": _rows(8192, 1),
}


def _source(prompt: Path) -> str:
    text = prompt.read_text(encoding="utf-8")
    found = re.search(r'HIP = r"""(.*?)"""', text, re.S) or re.search(r"```cpp\n(.*?)```", text, re.S)
    assert found is not None
    return found[1]


def _error(result: Array, expected: Floats) -> float:
    """Return the worst error in units of the tolerance that the judge has for the element type."""
    tolerance = RTOL_BY_NAME["bfloat16" if result.dtype == np.uint16 else "float32"]
    values = from_bf16(result) if result.dtype == np.uint16 else result.astype(np.float64)
    return float(np.max(abs(values - expected) / (tolerance * (abs(expected) + np.sqrt((expected**2).mean())))))


def test_there_is_a_case_for_each_example() -> None:
    assert {prompt.stem.removeprefix("_hipkittens_example_")[:-6] for prompt in EXAMPLES} == set(CASES)


@pytest.mark.hipcc
@pytest.mark.parametrize("prompt", EXAMPLES, ids=lambda prompt: prompt.stem.removeprefix("_hipkittens_example_"))
def test_an_example_is_right_and_clean(prompt: Path, tmp_path: Path) -> None:
    name = prompt.stem.removeprefix("_hipkittens_example_")
    if name not in EVERY_TIME and not os.environ.get("HKBENCH_CORPUS"):
        pytest.skip("only with HKBENCH_CORPUS=1: some seconds each")
    hip_or_skip(f"{name} was not executed")
    dialect = Dialect(name[-5:])
    include = kittens_or_skip(dialect, f"{name} was not executed") / "include"
    program = Program.load(device_code(_source(prompt), dialect.arch, tmp_path, include))
    for options in (Options(), Options(late=True, seed=3)):
        grid, threads, lds, arguments, arrays, result, expected = CASES[name[:-6]](dialect)
        outcome = run(program, grid, threads, arguments, arrays, lds=lds, options=options)
        assert outcome.refusal is None
        assert [str(fault) for fault in outcome.faults] == []
        assert sum(size for _, size in outcome.written) == result.nbytes
        assert _error(result, expected) < 0.5
