"""Launches of the HipKittens examples in the prompts: arguments, and what should come of them."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
from support.emulated import Array, Floats, from_bf16, layout, to_bf16

from hkbench.toolchain.hipkittens import Dialect

PROMPTS = Path(__file__).resolve().parents[2] / "prompts"
EXAMPLES = sorted(PROMPTS.glob("_hipkittens_example_*_cdna[34].txt"))
_RANDOM = np.random.default_rng(25)

#: grid, threads, LDS, arguments, arrays, the result and what it should be.
Case = tuple[tuple[int, ...], int, int, bytes, list[Array], Array, Floats]


def _bf16(*shape: int) -> Array:
    return to_bf16(_RANDOM.standard_normal(shape))


def _no_bf16(*shape: int) -> Array:
    return to_bf16(np.zeros(shape))


def _elementwise(dialect: Dialect) -> Case:
    x, w = (_RANDOM.standard_normal(shape).astype(np.float32) for shape in ((6, 512), (1, 512)))
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


_CASES: dict[str, Callable[[Dialect], Case]] = {
    "attention": _attention,
    "elementwise": _elementwise,
    "epilogue": _epilogue,
    "gemm": _product(128),
    "gemm_nn": _product(128, transposed=False),
    "pingpong": _product(256, tiles=4),
    "rows": _rows(2048, 4),
    "wide_rows": _rows(8192, 1),
}


def example_source(prompt: Path) -> str:
    """Return the HIP text in a prompt's file."""
    text = prompt.read_text(encoding="utf-8")
    found = re.search(r'HIP = r"""(.*?)"""', text, re.S) or re.search(r"```cpp\n(.*?)```", text, re.S)
    assert found is not None
    return found[1]


FAMILIES = frozenset(_CASES)


def example_name(prompt: Path) -> str:
    """Return FAMILY_DIALECT."""
    return prompt.stem.removeprefix("_hipkittens_example_")


def example_case(prompt: Path) -> Case:
    """Return an example's launch; the same numbers each time."""
    family, _, dialect = example_name(prompt).rpartition("_")
    _RANDOM.bit_generator.state = np.random.default_rng(25).bit_generator.state
    return _CASES[family](Dialect(dialect))
