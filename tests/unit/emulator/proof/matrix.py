"""Where the matrix instructions keep the elements of A, B, C and D, as formulas, and their products.

The formulas are those of AMD's matrix instruction calculator (CDNA3) and of the CDNA4 manual's figures of the wider
shapes. Products are of small integers, so that every order of summation gives the same, exact result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from unit.emulator.proof import formats
from unit.emulator.proof.formats import BF16, E2M1, E2M3, E3M2, F16, F32, F64, Format
from unit.emulator.proof.values import mask
from unit.emulator.proof.wave import LANES, Wave

_NAME = re.compile(
    r"v_mfma_(?:scale_)?(?P<result>[fi]\d+)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)(?:_(?P<blocks>\d+)b)?"
    r"_(?P<a>bf16|f8f6f4|xf32|[fi]\d+|fp8|bf8)(?:_(?P<b>fp8|bf8))?"
)
#: `cbsz` and `blgp` of the f8f6f4 instructions; fp8 and bf8 are OCP's there.
SMALL_TYPES = ("fp8", "bf8", "fp6", "bf6", "fp4")


class Position(NamedTuple):
    """Where an element lies: lane, and its place among the lane's elements of that operand."""

    lane: int
    item: int


@dataclass(frozen=True)
class Product:
    """D[m][n] = A[m][k] * B[k][n] + C[m][n], `blocks` of them."""

    m: int
    n: int
    k: int
    blocks: int
    result: str
    a: str
    b: str

    def left(self, block: int, row: int, k: int) -> Position:
        """Return where A[row][k] of a block lies."""
        return self._operand(self.a, self.m, block, row, k)

    def right(self, block: int, k: int, column: int) -> Position:
        """Return where B[k][column] of a block lies: as A's, transposed."""
        return self._operand(self.b, self.n, block, column, k)

    def _operand(self, name: str, size: int, block: int, at: int, k: int) -> Position:
        groups = LANES // size
        if self.mixed:
            piece = 16 if width(name) == 8 else 32
            group, item = k // piece % groups, k // (piece * groups) * piece + k % piece
            return Position(at + size * group, item)
        each = size * self.k * self.blocks // LANES
        return Position(at + size * (block + self.blocks * (k // each)), k % each)

    def output(self, block: int, row: int, column: int) -> Position:
        """Return where C and D keep [row][column] of a block."""
        groups = LANES // self.n
        if self.result == "f64":
            chunk = row * self.blocks + block
            return Position(chunk % groups * self.n + column, chunk // groups)
        chunk = block * self.m // 4 + row // 4
        return Position(chunk % groups * self.n + column, chunk // groups * 4 + row % 4)

    @property
    def mixed(self) -> bool:
        """Say whether its types are chosen by `cbsz` and `blgp`."""
        return self.k * 8 * self.m // LANES >= 256 and self.result == "f32" and width(self.a) <= 8

    def scale(self, size: int, at: int, k: int) -> int:
        """Return the lane whose scale holds for an element of A (or B): one for 32 elements along K."""
        return at + size * (k // 32)

    def registers(self, operand: str) -> int:
        """Return how many registers an operand takes."""
        if operand == "d":
            return self.m * self.n * self.blocks * width(self.result) // (32 * LANES)
        name, size = (self.a, self.m) if operand == "a" else (self.b, self.n)
        return max(1, size * self.k * self.blocks * width(name) // (32 * LANES))

    def elements(self) -> Iterator[tuple[int, int, int]]:
        return ((b, i, j) for b in range(self.blocks) for i in range(self.m) for j in range(self.n))


def product(mnemonic: str, a: str | None = None, b: str | None = None) -> Product | None:
    """Return what a mnemonic multiplies, with the types chosen by `cbsz` and `blgp` where it leaves them open."""
    found = _NAME.fullmatch(mnemonic)
    if not found:
        return None
    name = found["a"]
    left, right = (a or "fp8", b or "fp8") if name == "f8f6f4" else (name, found["b"] or name)
    m, n, k, blocks = (int(found[part] or 1) for part in ("m", "n", "k", "blocks"))
    return Product(m, n, k, blocks, found["result"], left, right)


def width(name: str) -> int:
    return int(re.sub(r"\D", "", name))


def form(name: str, arch: str) -> Format | None:
    """Return the format of a type; None for integers."""
    known = {"f64": F64, "f32": F32, "xf32": F32, "f16": F16, "bf16": BF16, "fp6": E2M3, "bf6": E3M2, "fp4": E2M1}
    if name in ("fp8", "bf8"):
        return formats.fp8(arch) if name == "fp8" else formats.bf8(arch)
    return known.get(name)


def code(value: int, name: str, arch: str) -> int:
    """Return the code of a small integer in a type. It has to be one of the type's numbers."""
    chosen = form(name, arch)
    if chosen is None:
        return value & mask(width(name))
    bits = chosen.round(value)
    assert chosen.decode(bits).value == value
    return bits


Matrix = NDArray[np.int64]


@dataclass
class Drawn:
    """Integer matrices to multiply: a[block][m][k], b[block][k][n], c[block][m][n]; scales are powers of two."""

    a: Matrix
    b: Matrix
    c: Matrix


def draw(shape: Product, seed: int) -> Drawn:
    """Draw matrices whose products are exact in the result's type."""
    rng = np.random.default_rng(seed)
    low, high = (-128, 128) if shape.a == "i8" else (-2, 3) if shape.mixed else (-4, 5)
    return Drawn(
        rng.integers(low, high, (shape.blocks, shape.m, shape.k)),
        rng.integers(low, high, (shape.blocks, shape.k, shape.n)),
        rng.integers(-1000, 1000, (shape.blocks, shape.m, shape.n)),
    )


def put(wave: Wave, register: int, name: str, position: Position, bits: int) -> None:
    """Write an element of an operand into the wave's registers."""
    size = width(name)
    low = position.item * size
    for at in range(low, low + size):  # six bits may lie across two registers
        word = register + at // 32
        wave.vgpr[word, position.lane] &= np.uint32(~(1 << at % 32) & mask(32))
        wave.vgpr[word, position.lane] |= np.uint32((bits >> (at - low) & 1) << at % 32)


def get(wave: Wave, register: int, name: str, position: Position) -> int:
    """Read an element of C or D."""
    words = width(name) // 32
    return wave.vector(register + position.item * words, position.lane, 32 * words)


def load(wave: Wave, shape: Product, drawn: Drawn, registers: tuple[int, int, int], arch: str) -> None:
    """Write the three operands into the wave's registers, which begin at these numbers."""
    for block in range(shape.blocks):
        for k in range(shape.k):
            for i in range(shape.m):
                put(
                    wave, registers[0], shape.a, shape.left(block, i, k), code(int(drawn.a[block, i, k]), shape.a, arch)
                )
            for j in range(shape.n):
                bits = code(int(drawn.b[block, k, j]), shape.b, arch)
                put(wave, registers[1], shape.b, shape.right(block, k, j), bits)
    for block, i, j in shape.elements():
        bits = code(int(drawn.c[block, i, j]), shape.result, arch)
        put(wave, registers[2], shape.result, shape.output(block, i, j), bits)


def multiplied(drawn: Drawn) -> Matrix:
    """Return A * B + C."""
    product: Matrix = np.matmul(drawn.a, drawn.b)
    return product + drawn.c


def expected(shape: Product, value: int | Fraction, arch: str) -> int:
    """Return the code of an element of D."""
    chosen = form(shape.result, arch)
    if chosen is None:
        return int(value) & mask(width(shape.result))
    return chosen.round(value)
