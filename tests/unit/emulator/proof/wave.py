"""One wave's registers and memory as the proof sees them: what an instruction should have made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from unit.emulator.proof.evaluator import Cell
from unit.emulator.proof.values import Value, mask

LANES = 64
ALL_LANES = mask(LANES)
VCC = 106  #: where VCC stands among the scalar operands
Words = NDArray[np.uint32]


@dataclass
class Wave:
    """Scalar registers, vector registers of 64 lanes, LDS, and one range of global memory.

    `floats` names what was written as floating point: register, lane, lowest bit and kind; there any NaN is as good as
    another, for which one an operation makes is not defined.
    """

    sgpr: list[int] = field(default_factory=lambda: [0] * 128)
    vgpr: Words = field(default_factory=lambda: np.zeros((256, LANES), np.uint32))
    agpr: Words = field(default_factory=lambda: np.zeros((256, LANES), np.uint32))
    exec: int = ALL_LANES
    scc: int = 0
    m0: int = 0
    mode: int = 0xF0  #: denormal numbers kept, rounding to even; a signalling NaN is one as any other (IEEE is 0)
    lds: bytearray = field(default_factory=lambda: bytearray(65536))
    memory: bytearray = field(default_factory=bytearray)
    address: int = 0  #: of the memory's first byte
    floats: dict[tuple[int, int, int], tuple[str, int]] = field(default_factory=dict)

    @property
    def vcc(self) -> int:
        return self.scalar(VCC, 64)

    @vcc.setter
    def vcc(self, value: int) -> None:
        self.set_scalar(VCC, value, 64)

    def copy(self) -> Wave:
        """Return a wave of its own with the same content."""
        return replace(
            self,
            sgpr=list(self.sgpr),
            vgpr=self.vgpr.copy(),
            agpr=self.agpr.copy(),
            lds=bytearray(self.lds),
            memory=bytearray(self.memory),
            floats={},
        )

    def lanes(self) -> Iterator[int]:
        """Yield the active lanes."""
        return (lane for lane in range(LANES) if self.exec >> lane & 1)

    def scalar(self, register: int, width: int) -> int:
        return sum(self.sgpr[register + i] << 32 * i for i in range(max(1, width // 32)))

    def set_scalar(self, register: int, value: int, width: int) -> None:
        for i in range(max(1, width // 32)):
            self.sgpr[register + i] = value >> 32 * i & mask(32)

    def vector(self, register: int, lane: int, width: int) -> int:
        """Return the bits of a lane in as many registers as the width takes."""
        return sum(int(self.vgpr[register + i, lane]) << 32 * i for i in range(max(1, (width + 31) // 32)))

    def set_vector(self, register: int, lane: int, cell: Cell) -> None:
        """Write the cell's bits back, and keep what of them is floating point."""
        for i in range(max(1, (cell.width + 31) // 32)):
            self.vgpr[register + i, lane] = cell.bits >> 32 * i & mask(32)
        for (low, width), kind in cell.written.items():
            if kind in ("f", "bf"):
                self.floats[register + low // 32, lane, low % 32] = (kind, width)


@dataclass(slots=True)
class Lane:
    """A cell of a VGPR: `VGPR[lane][register]`."""

    wave: Wave
    register: int
    lane: int
    width: int = 32
    kind: str = "b"

    def read(self, low: int, width: int) -> int:
        return self.wave.vector(self.register, self.lane, 32) >> low & mask(width)

    def write(self, low: int, value: Value) -> None:
        cell = Cell(self.read(0, 32))
        cell.write(low, value)
        self.wave.set_vector(self.register, self.lane, cell)


@dataclass(frozen=True, slots=True)
class LaneRow:
    wave: Wave
    lane: int

    def element(self, index: int) -> Lane:
        return Lane(self.wave, index, self.lane)


@dataclass(frozen=True, slots=True)
class Registers:
    """`VGPR` of the pseudocode."""

    wave: Wave

    def element(self, index: int) -> LaneRow:
        return LaneRow(self.wave, index)


@dataclass(slots=True)
class Bytes:
    """A cell of memory at an address: `MEM[addr]`, a word unless a type says more."""

    open_ended: ClassVar[bool] = True
    memory: bytearray
    at: int
    floats: dict[int, tuple[str, int]]
    width: int = 32
    kind: str = "b"

    def read(self, low: int, width: int) -> int:
        return int.from_bytes(self.memory[self.at : self.at + (low + width + 7) // 8], "little") >> low & mask(width)

    def write(self, low: int, value: Value) -> None:
        start = self.at + low // 8
        self.memory[start : start + value.width // 8] = value.bits.to_bytes(value.width // 8, "little")
        if value.kind in ("f", "bf"):
            self.floats[start] = (value.kind, value.width)


@dataclass(frozen=True, slots=True)
class Memory:
    """`MEM` of the pseudocode: a range of bytes that begins at an address."""

    bytes: bytearray
    first: int
    floats: dict[int, tuple[str, int]] = field(default_factory=dict)

    def element(self, index: int) -> Bytes:
        offset = index - self.first
        if not 0 <= offset < len(self.bytes):
            raise IndexError(f"{index:#x} is outside of the proof's memory")
        return Bytes(self.bytes, offset, self.floats)
