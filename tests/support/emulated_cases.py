"""Launches of the shipped HipKittens kernels at sizes of the emulated device: arguments, and what should come of them.

Each case draws its inputs anew from its own seed, so a kernel can be launched again and again on the same numbers.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
from support.emulated import Array, Floats, from_bf16, layout, to_bf16

from hkbench.toolchain.hipkittens import Dialect

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "hipkittens"
TILE = 128 * 64 * 2  # bytes
_RANDOM = np.random.default_rng(25)

#: grid, LDS, arguments, arrays, and of each result: the array, and what it should be.
Case = tuple[tuple[int, ...], int, bytes, list[Array], list[tuple[Array, Floats]]]


def _normal(*shape: int) -> Floats:
    return _RANDOM.standard_normal(shape)


def _square(dialect: Dialect, size: int) -> Case:
    n = 128 * size
    a, b, c = to_bf16(_normal(n, 192)), to_bf16(_normal(192, n)), to_bf16(np.zeros((n, n)))
    arguments = layout(a, n, 192) + layout(b, 192, n) + layout(c, n, n)
    return (size, size), _tiles(dialect, 2), arguments, [a, b, c], [(c, from_bf16(a) @ from_bf16(b))]


def _ragged(dialect: Dialect, size: int) -> Case:
    n = 128 * size
    rows, columns = n - 8, n - 24
    a, b = (
        to_bf16(np.pad(_normal(rows, 128), ((0, 8), (0, 0)))),
        to_bf16(np.pad(_normal(columns, 128), ((0, 24), (0, 0)))),
    )
    out = to_bf16(np.zeros((rows, columns)))
    arguments = layout(a, n, 128) + layout(b, n, 128) + layout(out, rows, columns)
    expected = (from_bf16(a) @ from_bf16(b).T)[:rows, :columns]
    return (size, size), _tiles(dialect, 2), arguments, [a, b, out], [(out, expected)]


def _scaled_residual(dialect: Dialect, size: int) -> Case:
    pieces = 96 * size - 2
    shape = (32 * pieces, 16) if dialect is Dialect.CDNA3 else (pieces, 512)  # the last workgroup has two waves' work
    x, y, out = to_bf16(_normal(*shape)), to_bf16(_normal(*shape)), to_bf16(np.zeros(shape))
    arguments = (
        layout(x, *x.shape) + layout(y, *x.shape) + layout(out, *x.shape) + struct.pack("<ffi", 0.5, 2.0, pieces)
    )
    expected = np.clip(from_bf16(x) + 0.5 * from_bf16(y), -2, 2)
    return ((pieces + 3) // 4,), 0, arguments, [x, y, out], [(out, expected)]


def _attention(dialect: Dialect, size: int) -> Case:
    shape = (1, size, 128 * size, 128)
    q, k, v, o = (to_bf16(_normal(*shape)) for _ in range(4))
    q[0, 0, 0] = to_bf16(60 * from_bf16(q[0, 0, 0]))  # too large for exponentials without the largest subtracted
    scale = 1 / math.sqrt(128)
    arguments = b"".join(layout(x, *shape, fixed=True) for x in (q, k, v, o)) + struct.pack(
        "<f", scale * math.log2(math.e)
    )
    scores = np.einsum("bhqd,bhkd->bhqk", from_bf16(q), from_bf16(k)) * scale
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("bhqk,bhkd->bhqd", weights / weights.sum(-1, keepdims=True), from_bf16(v))
    lds = 4 * 16 * 64 * 2 if dialect is Dialect.CDNA3 else 2 * 64 * 128 * 2
    return (size, size, 1), lds, arguments, [q, k, v, o], [(o, expected)]


def _gelu(dialect: Dialect, size: int) -> Case:
    n = 128 * size
    a, b, out = to_bf16(_normal(128, 128)), to_bf16(_normal(n, 128) / 11), to_bf16(np.zeros((128, n)))
    bias = to_bf16(_normal(n) / 2)
    arguments = layout(a, 128, 128) + layout(b, n, 128) + layout(bias, n) + layout(out, 128, n)
    y = from_bf16(a) @ from_bf16(b).T + from_bf16(bias)
    expected = y / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))
    return (size, 1), _tiles(dialect, 2), arguments, [a, b, bias, out], [(out, expected)]


def _residual_norm(dialect: Dialect, size: int) -> Case:
    rows = 3 * size
    x, residual, weight = to_bf16(_normal(rows, 8192)), to_bf16(_normal(rows, 8192)), to_bf16(1 + 0.2 * _normal(8192))
    out, total = to_bf16(np.zeros((rows, 8192))), to_bf16(np.zeros((rows, 8192)))
    arguments = b"".join(layout(t, rows, 8192, fixed=True) for t in (x, residual))
    arguments += layout(weight, 1, 8192, fixed=True) + b"".join(layout(t, rows, 8192, fixed=True) for t in (out, total))
    summed = from_bf16(x) + from_bf16(residual)
    normed = summed / np.sqrt((summed**2).mean(-1, keepdims=True) + 1e-5) * from_bf16(weight)
    arrays: list[Array] = [x, residual, weight, out, total]
    return (rows,), 0, arguments + struct.pack("<f", 1e-5), arrays, [(out, normed), (total, summed)]


def _norm(dialect: Dialect, size: int) -> Case:
    rows = 3 * size
    x, weight = _normal(rows, 8192).astype(np.float32), (1 + 0.1 * _normal(8192)).astype(np.float32)
    out = np.zeros_like(x)
    arguments = (
        layout(x, rows, 8192, fixed=True) + layout(weight, 1, 8192, fixed=True) + layout(out, rows, 8192, fixed=True)
    )
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * weight
    return (rows,), 0, arguments + struct.pack("<f", 1e-6), [x, weight, out], [(out, expected)]


def _softmax(dialect: Dialect, size: int) -> Case:
    scores, mask = _normal(7, 2048).astype(np.float32), np.where(_normal(4, 2048) > 1, -1e9, 0).astype(np.float32)
    scores[3] += 2000  # too large for exponentials without the largest subtracted
    out = np.zeros_like(scores)
    arguments = b"".join(layout(t, len(t), 2048, fixed=True) for t in (scores, mask, out)) + struct.pack("<f", 0.125)
    wide = scores * 0.125 + np.concatenate([mask, mask[:3]])
    weights = np.exp(wide - wide.max(-1, keepdims=True))
    return (2,), 0, arguments, [scores, mask, out], [(out, weights / weights.sum(-1, keepdims=True))]


def _tiles(dialect: Dialect, count: int) -> int:
    return TILE * count * (2 if dialect is Dialect.CDNA4 else 1)


_CASES: dict[str, Callable[[Dialect, int], Case]] = {
    "17_Matmul_square_bf16": _square,
    "19_Matmul_NT_ragged_bf16": _ragged,
    "1_Scaled_residual_bf16": _scaled_residual,
    "23_Attention_full_bf16": _attention,
    "38_Matmul_bias_GELU_bf16": _gelu,
    "39_Residual_RMSNorm_bf16": _residual_norm,
    "4_RMSNorm_fp32": _norm,
    "5_Scaled_masked_softmax_fp32": _softmax,
}


def is_right(result: Array, expected: Floats) -> bool:
    """Return whether a result is as near to what it should be as its type allows."""
    if result.dtype == np.uint16:
        return bool(np.allclose(from_bf16(result), expected, rtol=2**-7, atol=2**-6 * np.abs(expected).mean()))
    return bool(np.allclose(result, expected, rtol=1e-5, atol=1e-6))


PROBLEMS = tuple(_CASES)


def case(problem: str, dialect: Dialect, size: int = 2) -> Case:
    """Return a problem's launch of about `size` workgroups a dimension; the same numbers each time."""
    _RANDOM.bit_generator.state = np.random.default_rng(25).bit_generator.state
    return _CASES[problem](dialect, size)


def source_file(problem: str, dialect: Dialect) -> Path:
    """Return the known answer."""
    return EXAMPLES / dialect / f"{problem}.py"
