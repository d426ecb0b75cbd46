"""The shipped HipKittens kernels, executed from their machine code and compared with NumPy in float64.

They run as they were launched on a GPU: with the checker, and with late delivery in a drawn order.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.compilers import hip_or_skip
from support.emulated import Array, Floats, device_code, from_bf16, kernel_source, layout, run, to_bf16
from support.kittens import kittens_or_skip

from hkbench.emulator.executor import Options
from hkbench.emulator.program import Program
from hkbench.toolchain.hipkittens import WITH_CARD, Dialect

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "hipkittens"
TILE = 128 * 64 * 2  # bytes
RNG = np.random.default_rng(25)

#: grid, LDS, arguments, arrays, and of each result: the array, and what it should be.
Case = tuple[tuple[int, ...], int, bytes, list[Array], list[tuple[Array, Floats]]]


def _normal(*shape: int) -> Floats:
    return RNG.standard_normal(shape)


def _square(dialect: Dialect) -> Case:
    a, b, c = to_bf16(_normal(256, 192)), to_bf16(_normal(192, 256)), to_bf16(np.zeros((256, 256)))
    arguments = layout(a, 256, 192) + layout(b, 192, 256) + layout(c, 256, 256)
    return (2, 2), _tiles(dialect, 2), arguments, [a, b, c], [(c, from_bf16(a) @ from_bf16(b))]


def _ragged(dialect: Dialect) -> Case:
    rows, columns = 200, 136
    a, b = (
        to_bf16(np.pad(_normal(rows, 128), ((0, 56), (0, 0)))),
        to_bf16(np.pad(_normal(columns, 128), ((0, 120), (0, 0)))),
    )
    out = to_bf16(np.zeros((rows, columns)))
    arguments = layout(a, 256, 128) + layout(b, 256, 128) + layout(out, rows, columns)
    expected = (from_bf16(a) @ from_bf16(b).T)[:rows, :columns]
    return (2, 2), _tiles(dialect, 2), arguments, [a, b, out], [(out, expected)]


def _scaled_residual(dialect: Dialect) -> Case:
    shape = (6144, 16) if dialect is Dialect.CDNA3 else (192, 512)
    x, y, out = to_bf16(_normal(*shape)), to_bf16(_normal(*shape)), to_bf16(np.zeros(shape))
    pieces = x.size // 512
    arguments = (
        layout(x, *x.shape) + layout(y, *x.shape) + layout(out, *x.shape) + struct.pack("<ffi", 0.5, 2.0, pieces)
    )
    expected = np.clip(from_bf16(x) + 0.5 * from_bf16(y), -2, 2)
    return ((pieces + 3) // 4,), 0, arguments, [x, y, out], [(out, expected)]


def _attention(dialect: Dialect) -> Case:
    shape = (1, 2, 256, 128)
    q, k, v, o = (to_bf16(_normal(*shape)) for _ in range(4))
    scale = 1 / math.sqrt(128)
    arguments = b"".join(layout(x, *shape, fixed=True) for x in (q, k, v, o)) + struct.pack(
        "<f", scale * math.log2(math.e)
    )
    scores = np.einsum("bhqd,bhkd->bhqk", from_bf16(q), from_bf16(k)) * scale
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("bhqk,bhkd->bhqd", weights / weights.sum(-1, keepdims=True), from_bf16(v))
    lds = 4 * 16 * 64 * 2 if dialect is Dialect.CDNA3 else 2 * 64 * 128 * 2
    return (2, 2, 1), lds, arguments, [q, k, v, o], [(o, expected)]


def _gelu(dialect: Dialect) -> Case:
    a, b, out = to_bf16(_normal(128, 128)), to_bf16(_normal(256, 128) / 11), to_bf16(np.zeros((128, 256)))
    bias = to_bf16(_normal(256) / 2)
    arguments = layout(a, 128, 128) + layout(b, 256, 128) + layout(bias, 256) + layout(out, 128, 256)
    y = from_bf16(a) @ from_bf16(b).T + from_bf16(bias)
    expected = y / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))
    return (2, 1), _tiles(dialect, 2), arguments, [a, b, bias, out], [(out, expected)]


def _residual_norm(dialect: Dialect) -> Case:
    x, residual, weight = to_bf16(_normal(6, 8192)), to_bf16(_normal(6, 8192)), to_bf16(1 + 0.2 * _normal(8192))
    out, total = to_bf16(np.zeros((6, 8192))), to_bf16(np.zeros((6, 8192)))
    arguments = b"".join(layout(t, 6, 8192, fixed=True) for t in (x, residual))
    arguments += layout(weight, 1, 8192, fixed=True) + b"".join(layout(t, 6, 8192, fixed=True) for t in (out, total))
    summed = from_bf16(x) + from_bf16(residual)
    normed = summed / np.sqrt((summed**2).mean(-1, keepdims=True) + 1e-5) * from_bf16(weight)
    arrays: list[Array] = [x, residual, weight, out, total]
    return (6,), 0, arguments + struct.pack("<f", 1e-5), arrays, [(out, normed), (total, summed)]


def _norm(dialect: Dialect) -> Case:
    x, weight = _normal(6, 8192).astype(np.float32), (1 + 0.1 * _normal(8192)).astype(np.float32)
    out = np.zeros_like(x)
    arguments = layout(x, 6, 8192, fixed=True) + layout(weight, 1, 8192, fixed=True) + layout(out, 6, 8192, fixed=True)
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * weight
    return (6,), 0, arguments + struct.pack("<f", 1e-6), [x, weight, out], [(out, expected)]


def _softmax(dialect: Dialect) -> Case:
    scores, mask = _normal(8, 2048).astype(np.float32), np.where(_normal(4, 2048) > 1, -1e9, 0).astype(np.float32)
    out = np.zeros_like(scores)
    arguments = b"".join(layout(t, len(t), 2048, fixed=True) for t in (scores, mask, out)) + struct.pack("<f", 0.125)
    wide = scores * 0.125 + np.concatenate([mask, mask])
    weights = np.exp(wide - wide.max(-1, keepdims=True))
    return (2,), 0, arguments, [scores, mask, out], [(out, weights / weights.sum(-1, keepdims=True))]


def _tiles(dialect: Dialect, count: int) -> int:
    return TILE * count * (2 if dialect is Dialect.CDNA4 else 1)


CASES: dict[str, Callable[[Dialect], Case]] = {
    "17_Matmul_square_bf16": _square,
    "19_Matmul_NT_ragged_bf16": _ragged,
    "1_Scaled_residual_bf16": _scaled_residual,
    "23_Attention_full_bf16": _attention,
    "38_Matmul_bias_GELU_bf16": _gelu,
    "39_Residual_RMSNorm_bf16": _residual_norm,
    "4_RMSNorm_fp32": _norm,
    "5_Scaled_masked_softmax_fp32": _softmax,
}


def _right(result: Array, expected: Floats) -> bool:
    if result.dtype == np.uint16:
        return bool(np.allclose(from_bf16(result), expected, rtol=2**-7, atol=2**-6 * np.abs(expected).mean()))
    return bool(np.allclose(result, expected, rtol=1e-5, atol=1e-6))


@pytest.mark.hipcc
@pytest.mark.slow
@pytest.mark.parametrize("dialect", WITH_CARD)
@pytest.mark.parametrize("problem", CASES)
def test_it_is_right_and_clean(problem: str, dialect: Dialect, tmp_path: Path) -> None:
    hip_or_skip(f"{problem} was not executed")
    include = kittens_or_skip(dialect, f"{problem} was not executed") / "include"
    source = kernel_source(EXAMPLES / dialect / f"{problem}.py")
    program = Program.load(device_code(source, dialect.arch, tmp_path, include))
    for options in (Options(), Options(late=True, seed=3), Options(check=False)):
        grid, lds, arguments, arrays, results = CASES[problem](dialect)
        outcome = run(program, grid, 256, arguments, arrays, lds=lds, options=options)
        assert outcome.refusal is None
        assert [str(fault) for fault in outcome.faults] == []
        assert sum(size for _, size in outcome.written) == sum(result.nbytes for result, _ in results)
        for result, expected in results:
            assert _right(result, expected)
