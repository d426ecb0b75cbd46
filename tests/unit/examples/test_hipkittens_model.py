"""What the HipKittens candidates compute, followed on a CPU: addresses in LDS, registers of each lane, order of sums.

Two things are shown. First, that what a wave reads from LDS is what the matrix instruction wants in each lane. Second,
that the arithmetic of each candidate, with its order of sums and its roundings to bfloat16, stays within the
evaluator's tolerance for all of the evaluator's input distributions. It is a model: no instruction of a GPU was run.
It takes from the manuals which lane holds which operand of an MFMA and what `ds_read_b64_tr_b16` returns, it sums
inside of one MFMA in an order of its own, and it knows nothing of waits and barriers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from hkbench.analysis.compare import compare_output
from hkbench.analysis.input_distributions import NAMES, Variator
from hkbench.analysis.reference import Reference
from hkbench.problems.load import load_problem
from hkbench.records import SizeSet

LEVEL1 = Path(__file__).resolve().parents[3] / "problems" / "level1"
LANE = torch.arange(64)
LOG2E = 1.4426950408889634


@dataclass(frozen=True)
class Layout:
    """Which element of a base tile a lane holds in which of its registers (one element a register here)."""

    rows: int
    cols: int
    stride: int  #: neighbours that a lane holds
    by_column: bool = False

    def places(self) -> tuple[Tensor, Tensor]:
        """(row, column) of register j of lane l, each [64, registers]."""
        across = self.cols if self.by_column else self.rows
        j = torch.arange(self.rows * self.cols // 64)
        fixed = (LANE % across)[:, None].expand(64, len(j))
        group = self.stride * (64 // across)
        along = self.stride * (LANE // across)[:, None] + group * (j // self.stride) + j % self.stride
        return (along, fixed) if self.by_column else (fixed, along)

    def registers(self, matrix: Tensor) -> Tensor:
        """[tile rows, tile columns, lane, register] of a matrix that the base tile divides."""
        height, width = matrix.shape[0] // self.rows, matrix.shape[1] // self.cols
        tiles = matrix.reshape(height, self.rows, width, self.cols).permute(0, 2, 1, 3)
        rows, cols = self.places()
        return tiles[:, :, rows, cols]

    def matrix(self, registers: Tensor) -> Tensor:
        """The inverse of `registers`."""
        height, width = registers.shape[:2]
        tiles = torch.zeros(height, width, self.rows, self.cols, dtype=registers.dtype)
        rows, cols = self.places()
        tiles[:, :, rows, cols] = registers
        return tiles.permute(0, 2, 1, 3).reshape(height * self.rows, width * self.cols)


def _lanes(x: Tensor, size: int) -> Tensor:
    """[..., 64, n] as [..., 64 // size, size, n]."""
    return x.reshape(*x.shape[:-2], -1, size, x.shape[-1])


@dataclass(frozen=True)
class Mfma:
    """A bf16 MFMA: operands and sums of `size` by `size`; lane l holds consecutive k, from l // size on."""

    size: int

    @property
    def sums(self) -> Layout:
        return Layout(self.size, self.size, 4, by_column=True)

    def __call__(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        """c + a * b^T for registers [..., 64, n] of a and b, row index = lane % size, k in the hardware's order."""
        left, right = (_lanes(x.float(), self.size).transpose(-3, -2).flatten(-2) for x in (a, b))
        rows, cols = self.sums.places()
        return c + (left @ right.mT)[..., rows, cols]


def ids(rows: int, cols: int) -> Tensor:
    return torch.arange(rows * cols).reshape(rows, cols)


# CDNA4: 16 bytes a lane go straight to consecutive LDS addresses; what is permuted is the place they are read from.

RT_16X32, RT_32X16 = Layout(16, 32, 8), Layout(32, 16, 8)
RT_32X16_COLUMNS, RT_16X32_4_COLUMNS = Layout(32, 16, 8, by_column=True), Layout(16, 32, 4, by_column=True)


@dataclass(frozen=True)
class Shape4:
    """A shape of shared tiles; swizzle: (modulus, right shift, left shift) of the byte offset, one after the other."""

    rows: int
    cols: int
    xors: tuple[tuple[int, int, int], ...]

    def swizzle(self, row: Tensor, col: Tensor) -> Tensor:
        offset = 2 * (row * self.cols + col)
        return offset ^ sum(((offset % modulus) >> right) << left for modulus, right, left in self.xors)


ST_16X32 = Shape4(16, 32, ((1024, 9, 5),))
ST_32X16 = Shape4(32, 16, ((1024, 9, 4),))
ST_32X32 = Shape4(32, 32, ((1024, 9, 5), (2048, 10, 4)))
ST_8X32 = Shape4(8, 32, ())


def lds4(matrix: Tensor, shape: Shape4) -> Tensor:
    """The elements in the order of LDS after `G::load`, whatever the number of waves."""
    byte = torch.arange(0, 2 * matrix.numel(), 16)
    size = 2 * shape.rows * shape.cols
    sub, inside = byte // size, byte % size
    per_row = matrix.shape[1] // shape.cols
    moved = shape.swizzle(inside // (2 * shape.cols), inside % (2 * shape.cols) // 2)
    row = moved // (2 * shape.cols) + sub // per_row * shape.rows
    col = moved % (2 * shape.cols) // 2 + sub % per_row * shape.cols
    return matrix[row[:, None], col[:, None] + torch.arange(8)].flatten()


def _words(lds: Tensor, byte: Tensor, elements: int) -> Tensor:
    assert (byte % (2 * elements) == 0).all(), "a read from LDS is aligned"
    return lds[byte[:, None] // 2 + torch.arange(elements)]


def _transposed_read(lds: Tensor, byte: Tensor) -> Tensor:
    """ds_read_b64_tr_b16: 16 lanes address a 4x16 block by rows, and each gets a column of it."""
    read = _words(lds, byte, 4)
    source = 16 * (LANE // 16) + LANE % 16 // 4
    return torch.stack([read[source + 4 * j, LANE % 4] for j in range(4)], dim=1)


def read4(
    lds: Tensor, shape: Shape4, cols: int, layout: Layout, height: int, width: int, at: tuple[int, int]
) -> Tensor:
    """`load(rt, st)` of height by width base tiles, from the view whose first element is `at`."""
    per_row, size = cols // shape.cols, 2 * shape.rows * shape.cols
    base = (at[0] // shape.rows * per_row + at[1] // shape.cols) * size
    group = layout.stride * 64 // (layout.cols if layout.by_column else layout.rows)
    if layout.by_column:
        row = LANE % 16 // 4 + LANE // layout.cols * layout.stride
        col = LANE % 4 * 4 + LANE % layout.cols // 16 * 16
    else:
        row, col = LANE % layout.rows, layout.stride * (LANE // layout.rows)
    found = torch.zeros(height, width, 64, layout.rows * layout.cols // 64, dtype=lds.dtype)
    for i in range(height):
        for j in range(width):
            for k in range(found.shape[3] // layout.stride):
                top, left = i * layout.rows, j * layout.cols
                if layout.by_column:
                    top += k * group
                else:
                    left += k * group
                sub = base + (top // shape.rows * per_row + left // shape.cols) * size
                inner = (row + top % shape.rows, col + left % shape.cols)
                here = slice(k * layout.stride, (k + 1) * layout.stride)
                if layout.by_column:
                    parts = [(inner[0] + 4 * n, inner[1]) for n in range(layout.stride // 4)]
                    read = [_transposed_read(lds, sub + shape.swizzle(*part)) for part in parts]
                    found[i, j, :, here] = torch.cat(read, dim=1)
                else:
                    found[i, j, :, here] = _words(lds, sub + shape.swizzle(*inner), layout.stride)
    return found


@pytest.mark.parametrize(
    ("shape", "tile", "layout", "part"),
    [
        (ST_16X32, (128, 64), RT_16X32, (64, 64)),  # both operands of a @ b.T, the first of a @ b
        (ST_32X16, (64, 128), RT_32X16_COLUMNS, (64, 64)),  # the second of a @ b
        (ST_32X32, (64, 128), RT_32X16, (64, 128)),  # keys
        (ST_8X32, (64, 128), RT_16X32_4_COLUMNS, (64, 128)),  # values
    ],
    ids=["16x32", "32x16 by column", "32x32", "8x32 by column"],
)
def test_cdna4_lanes_get_their_operands_from_lds(
    shape: Shape4, tile: tuple[int, int], layout: Layout, part: tuple[int, int]
) -> None:
    matrix = ids(*tile)
    lds = lds4(matrix, shape)
    assert lds.sort().values.equal(matrix.flatten())
    for top in range(0, tile[0], part[0]):
        for left in range(0, tile[1], part[1]):
            grid = (part[0] // layout.rows, part[1] // layout.cols)
            read = read4(lds, shape, tile[1], layout, *grid, (top, left))
            assert read.equal(layout.registers(matrix[top : top + part[0], left : left + part[1]]))


# CDNA3: one base tile, and LDS in blocks of 64 columns, swizzled by 8 bytes.

RT3, RT3_COLUMNS = Layout(16, 16, 4), Layout(16, 16, 4, by_column=True)


def place3(row: Tensor, col: Tensor, rows: int, start: int) -> Tensor:
    """The byte address of an element of a tile that begins at byte `start`."""
    address = start + 2 * (col // 64 * rows * 64 + row * 64 + col % 64)
    return address ^ (((address % 2048) >> 7) << 3)


def lds3(matrix: Tensor, start: int) -> Tensor:
    rows, cols = matrix.shape
    row, col = torch.arange(rows)[:, None], torch.arange(cols)[None]
    lds = torch.full((start // 2 + matrix.numel(),), -1)
    lds[place3(row, col, rows, start) // 2] = matrix
    return lds


def read3(
    lds: Tensor, tile: tuple[int, int], start: int, layout: Layout, at: tuple[int, int], part: tuple[int, int]
) -> Tensor:
    """Row layout: one address a column of base tiles, and a constant step a row. Column layout: each element's own."""
    found = torch.zeros(part[0] // 16, part[1] // 16, 64, 4, dtype=lds.dtype)
    rows, cols = layout.places()
    for i in range(found.shape[0]):
        for j in range(found.shape[1]):
            if layout.by_column:
                byte = place3(at[0] + 16 * i + rows, at[1] + 16 * j + cols, tile[0], start)
                found[i, j] = lds[byte // 2]
            else:
                byte = place3(at[0] + rows[:, 0], at[1] + 16 * j + cols[:, 0], tile[0], start) + i * tile[1] * 16 * 2
                found[i, j] = _words(lds, byte % (2 * len(lds)), 4)
    return found


@pytest.mark.parametrize(
    ("tile", "layout", "part"),
    [
        ((128, 64), RT3, (64, 16)),  # both operands of a @ b.T, the first of a @ b
        ((64, 128), RT3_COLUMNS, (16, 64)),  # the second of a @ b
        ((16, 64), RT3, (16, 64)),  # half of the keys' columns
        ((16, 64), RT3_COLUMNS, (16, 64)),  # half of the values' columns
    ],
)
@pytest.mark.parametrize("start", [0, 16384])
def test_cdna3_lanes_get_their_operands_from_lds(
    tile: tuple[int, int], layout: Layout, part: tuple[int, int], start: int
) -> None:
    matrix = ids(*tile)
    lds = lds3(matrix, start)
    for top in range(0, tile[0], part[0]):
        for left in range(0, tile[1], part[1]):
            read = read3(lds, tile, start, layout, (top, left), part)
            assert read.equal(layout.registers(matrix[top : top + part[0], left : left + part[1]]))


def test_cdna3_would_misread_keys_of_128_columns() -> None:
    """Why the candidate cuts the head dimension in halves."""
    matrix = ids(32, 128)
    read = read3(lds3(matrix, 0), (32, 128), 0, RT3, (0, 0), (32, 128))
    expected = RT3.registers(matrix)
    assert read[0].equal(expected[0])
    assert not read[1].equal(expected[1])


# Arithmetic.


def nearest(x: Tensor) -> Tensor:
    """`to_nearest_bf16` and the truncating store behind it, in integers as the kernels do it."""
    bits = x.float().contiguous().view(torch.int32).to(torch.int64) & 0xFFFFFFFF
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    as_float = torch.where(rounded >= 1 << 31, rounded - (1 << 32), rounded).to(torch.int32).view(torch.float32)
    return torch.where(x == x, as_float, x.float()).bfloat16()


def test_nearest_is_round_to_nearest_even() -> None:
    x = torch.randint(-(2**31), 2**31 - 1, (1 << 16,), dtype=torch.int32).view(torch.float32)
    ties = (torch.arange(1 << 16, dtype=torch.int32) << 16 | 0x8000).view(torch.float32)
    for values in (x, ties, torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 3.4e38])):
        assert torch.equal(nearest(values).nan_to_num(7.0), values.bfloat16().nan_to_num(7.0))


def summed(x: Tensor, dialect: str, length: int, reduce: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """A wave's part of a row [..., pieces * length]: piece by piece, within a lane, then lanes by halves."""
    pieces = x.reshape(*x.shape[:-1], -1, length)
    total = pieces[..., 0, :]
    for i in range(1, pieces.shape[-2]):
        total = reduce(total, pieces[..., i, :])
    own = total.reshape(*total.shape[:-1], *((64, -1) if dialect == "cdna4" else (-1, 64)))
    own = own if dialect == "cdna4" else own.mT
    lanes = own[..., 0]
    for j in range(1, own.shape[-1]):
        lanes = reduce(lanes, own[..., j])
    while lanes.shape[-1] > 1:
        lanes = reduce(*lanes.chunk(2, dim=-1))
    return lanes


def mean_square_scale(x: Tensor, dialect: str, length: int, eps: float) -> Tensor:
    parts = [summed(wave * wave, dialect, length, torch.add) for wave in x.chunk(4, dim=-1)]
    total: Tensor = ((parts[0] + parts[1]) + parts[2]) + parts[3]
    return torch.rsqrt(total * (1.0 / x.shape[-1]) + eps)


def scaled_residual(model: Any, dialect: str, x: Tensor, y: Tensor) -> Tensor:
    return nearest((x.float() + y.float() * model.alpha).clamp(-model.limit, model.limit))


def rms_norm(model: Any, dialect: str, x: Tensor) -> Tensor:
    weight: Tensor = model.weight
    return x * mean_square_scale(x, dialect, 256, model.eps) * weight


def residual_rms_norm(model: Any, dialect: str, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
    total = x.float() + residual.float()
    scaled = total * mean_square_scale(total, dialect, 512, model.eps)
    return nearest(scaled * model.weight.float()), nearest(total)


def masked_softmax(model: Any, dialect: str, scores: Tensor, mask: Tensor) -> Tensor:
    scale: float = model.scale
    x = scores * scale + mask
    x = torch.exp2((x - summed(x, dialect, 256, torch.maximum)) * LOG2E)
    return x * torch.reciprocal(summed(x, dialect, 256, torch.add))


def product(dialect: str, a: Tensor, b: Tensor) -> Tensor:
    """a * b^T in fp32 by one wave's instructions on registers; b's operand by column holds the same registers."""
    mfma, layout = Mfma(16), (RT_16X32 if dialect == "cdna4" else RT3)
    left, right = layout.registers(a), layout.registers(b)
    sums = torch.zeros(left.shape[0], right.shape[0], 64, 4)
    for k in range(left.shape[1]):
        sums = mfma(left[:, None, k], right[None, :, k], sums)
    return mfma.sums.matrix(sums)


def matmul_nn(model: Any, dialect: str, a: Tensor, b: Tensor) -> Tensor:
    return nearest(product(dialect, a, b.T.contiguous()))


def matmul_nt(model: Any, dialect: str, a: Tensor, b: Tensor) -> Tensor:
    pad = [torch.nn.functional.pad(x, (0, -x.shape[1] % 64, 0, -x.shape[0] % 128)) for x in (a, b)]
    return nearest(product(dialect, *pad)[: a.shape[0], : b.shape[0]])


def linear_gelu(model: Any, dialect: str, x: Tensor) -> Tensor:
    y = product(dialect, x, model.weight) + model.bias.float()
    u = 0.7978845608028654 * (y + 0.044715 * y * y * y)
    return nearest(y / (1.0 + torch.exp2(-2.0 * u * LOG2E)))


def _down_columns(s: Tensor, size: int, reduce: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """`col_max`, `col_sum` of [..., tiles, 64, n]: even and odd registers, both, then the lanes of a column."""
    flat = s.transpose(-3, -2).flatten(-2)
    pair = flat[..., 0:2]
    for j in range(2, flat.shape[-1], 2):
        pair = reduce(pair, flat[..., j : j + 2])
    lanes = _lanes(reduce(pair[..., 0:1], pair[..., 1:2]), size)[..., 0]
    while lanes.shape[-2] > 1:
        lanes = reduce(*lanes.chunk(2, dim=-2))
    return lanes.repeat_interleave(64 // size, -2).flatten(-2)[..., None, :, None]


def attention(model: Any, dialect: str, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    assert q.shape[:2] == (1, 1)
    return _attend(dialect, q[0, 0], k[0, 0], v[0, 0], model.scale)[None, None]


def _attend(dialect: str, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """All base tiles of queries side by side. Scores and sums are transposed: a lane has one query."""
    size, block = (32, 64) if dialect == "cdna4" else (16, 16)
    mfma, operand = Mfma(size), (RT_32X16 if dialect == "cdna4" else RT3)
    by_column = RT_16X32_4_COLUMNS if dialect == "cdna4" else RT3_COLUMNS
    queries = operand.registers(q)[:, None]
    out = torch.zeros(len(queries), v.shape[1] // size, 64, size * size // 64)
    before, total = torch.full((len(queries), 1, 64, 1), -torch.inf), torch.zeros(len(queries), 1, 64, 1)
    for keys, values in zip(k.split(block), v.split(block), strict=True):
        tiles = operand.registers(keys)
        s = torch.zeros(len(queries), len(tiles), *out.shape[2:])
        for d in range(tiles.shape[1]):
            s = mfma(tiles[:, d], queries[:, :, d], s)
        s = s * (scale * LOG2E)
        largest = torch.maximum(before, _down_columns(s, size, torch.maximum))
        correction, before = torch.exp2(before - largest), largest
        s = torch.exp2(s - largest)
        total = total * correction + _down_columns(s, size, torch.add)
        out = out * correction
        # The sums' registers are the next product's operand: 16 rows of keys at a time.
        p = nearest(s).unflatten(3, (size // 16, -1)).transpose(2, 3).flatten(1, 2)
        rows = by_column.registers(values)
        for i in range(len(rows)):
            out = mfma(rows[i], p[:, None, i], out)
    return nearest(mfma.sums.matrix((out / total).transpose(0, 1)).T)


MODELS: dict[str, tuple[Callable[..., Any], dict[str, int | float]]] = {
    "1_Scaled_residual_bf16": (scaled_residual, {"rows": 64, "columns": 1024}),
    "4_RMSNorm_fp32": (rms_norm, {"tokens": 16, "hidden": 8192}),
    "5_Scaled_masked_softmax_fp32": (masked_softmax, {"batch": 2, "queries": 32, "keys": 2048}),
    "17_Matmul_square_bf16": (matmul_nn, {"n": 256}),
    "19_Matmul_NT_ragged_bf16": (matmul_nt, {"m": 135, "n": 119, "k": 301}),
    "23_Attention_full_bf16": (attention, {"batch": 1, "heads": 1, "positions": 256, "head_dim": 128}),
    "38_Matmul_bias_GELU_bf16": (linear_gelu, {"tokens": 128, "in_features": 512, "out_features": 128}),
    "39_Residual_RMSNorm_bf16": (residual_rms_norm, {"tokens": 16, "hidden": 8192}),
}


@pytest.mark.parametrize("dialect", ["cdna3", "cdna4"])
@pytest.mark.parametrize("name", MODELS)
def test_the_arithmetic_is_within_the_evaluators_tolerance(name: str, dialect: str) -> None:
    computed, sizes = MODELS[name]
    problem = load_problem(LEVEL1 / f"{name}.py").model_copy(update={"cpu_sizes": sizes})
    reference = Reference(problem, SizeSet.CPU, torch.device("cpu"), seed=1)
    variator = Variator(reference)
    for seed, distribution in enumerate(("own", *NAMES)):
        drawn = variator.draw(distribution, seed)
        with torch.no_grad():
            made = computed(reference.model, dialect, *drawn.inputs)
        outputs = dict(zip(drawn.native, made if isinstance(made, tuple) else (made,), strict=True))
        for path, got in outputs.items():
            native, precise = drawn.native[path], drawn.precise[path]
            assert isinstance(native, Tensor)
            assert isinstance(precise, Tensor)
            assert (got.dtype, got.shape) == (native.dtype, native.shape)
            leaf, _ = compare_output(path, native, precise, got)
            assert leaf.worst <= 1.0, (drawn.name, path, leaf)
