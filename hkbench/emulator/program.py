"""A code object, decoded once: its kernels, its code for the executor, and its image in memory."""

from __future__ import annotations

import ctypes
import mmap
import re
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hkbench.emulator import elf
from hkbench.emulator.build import core
from hkbench.emulator.callers import SYMBOLIZER, callers
from hkbench.emulator.encode import SIZE, Code, encode
from hkbench.emulator.kernels import Kernel, kernels
from hkbench.emulator.listing import OBJDUMP, BadCodeObject, disassemble, tool

__all__ = ["BadCodeObject", "Kernel", "Program"]

_INCLUDED = "/include/"  #: in the path of a library's file
#: Of no line: the compiler puts it where it likes, and the listing has it at the line before.
_CONSTANT = re.compile(r"[sv]_movk?_[bi]\d+\w* \S+, -?[\dx.a-f]+")


@dataclass(frozen=True)
class ImageRange:
    """A part of the image in memory."""

    begin: int
    size: int
    writable: bool


class Program:
    """A code object of gfx942 or gfx950, ready to be launched."""

    def __init__(
        self,
        code_object: elf.CodeObject,
        code: Code,
        callers: Callable[[Collection[int]], Mapping[int, tuple[str, ...]]] = lambda _addresses: {},
    ) -> None:
        """Link `code` and lay out the image. `callers`: see `hkbench.emulator.callers`."""
        self.callers = callers
        self.arch: str = code_object.arch
        self.kernels: Mapping[str, Kernel] = kernels(code_object)
        self.code = code
        self._variables = {name: (at, code_object.sizes[name]) for name, at in code_object.symbols.items()}
        self._size = code_object.size
        self.length = len(code.lines)
        self.records = ctypes.create_string_buffer(bytes(code.records), len(code.records))
        bad = core().hkbench_emulator_link(self.records, self.length)
        if bad != self.length or len(code.records) != SIZE * (self.length + 1):
            raise AssertionError(f"the decoder let an operand out of bounds: {code.lines[bad].text}")
        self._memory = mmap.mmap(-1, max(code_object.size, 1) + mmap.PAGESIZE)
        self.image = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.ranges: list[ImageRange] = []
        self._lay_out(code_object)
        self._require_own()

    @classmethod
    def load(cls, code_object: bytes, *, objdump: Path | None = None) -> Program:
        """Decode a code object (ELF).

        Raises:
            BadCodeObject: it is damaged, or for another architecture.
            ToolchainUnavailable: there is no objdump, or no C++ compiler to build the executor.
        """
        parts = elf.read(code_object)
        program = objdump or tool(OBJDUMP)
        code = encode(disassemble(code_object, program), parts.arch)
        return cls(parts, code, lambda asked: callers(code_object, asked, program.with_name(SYMBOLIZER)))

    @cached_property
    def source_waits(self) -> Sequence[int]:
        """The waits that stand in the kernels' own source, by instruction; all where no lines are known.

        A compiler's own wait has the line of the instruction that it is for, which is the one behind it; where that is
        of no line, the listing has both at the line before.
        """
        found: list[int] = []
        behind, constant = "", False
        for number in reversed(range(self.length)):
            line = self.code.lines[number]
            if not line.text.startswith("s_waitcnt"):
                constant = _CONSTANT.fullmatch(line.text) is not None
                behind = behind if constant else line.place
            elif not line.place or not (
                line.place == behind
                or _INCLUDED in line.place
                or (constant and line.place == self._place_before(number))
            ):
                found.append(number)
        return found[::-1]

    def _place_before(self, number: int) -> str:
        """Return the line of the nearest instruction before one that is no wait."""
        before = (line for line in reversed(self.code.lines[:number]) if not line.text.startswith("s_waitcnt"))
        return next((line.place for line in before), "")

    def _require_own(self) -> None:
        """See that each instruction was read where it lies: names and paths that objdump prints are a candidate's.

        Raises:
            BadCodeObject: a line is of other bytes, or of bytes that a line before had.
        """
        end = 0
        for line in self.code.lines:
            begin, size = line.address, 4 * len(line.words)
            if begin < end or begin + size > self._size:
                raise BadCodeObject(f"it has two instructions at {begin:#x}, or one beyond its end")
            if self._memory[begin : begin + size] != struct.pack(f"<{len(line.words)}I", *line.words):
                raise BadCodeObject(f"what was read at {begin:#x} ({line.text}) does not lie there")
            end = begin + size

    def write(self, variable: str, offset: int, data: bytes) -> None:
        """Write to a variable of the code object's. Raises ValueError: there is none, or it is not so large."""
        at = self._place(variable, offset, len(data))
        self._memory[at : at + len(data)] = data

    def read(self, variable: str, offset: int, size: int) -> bytes:
        """Return bytes of a variable. Raises ValueError as `write` does."""
        at = self._place(variable, offset, size)
        return self._memory[at : at + size]

    def _place(self, variable: str, offset: int, size: int) -> int:
        at, extent = self._variables.get(variable, (0, -1))
        if offset + size > extent or at + extent > self._size:
            raise ValueError(f"the code object has no {offset + size} bytes of {variable}")
        return at + offset

    def _lay_out(self, code_object: elf.CodeObject) -> None:
        for segment in code_object.segments:
            self._memory[segment.address : segment.address + len(segment.content)] = segment.content
            self.ranges.append(ImageRange(self.image + segment.address, segment.size, segment.writable))
        for place, value in code_object.relocations:
            struct.pack_into("<Q", self._memory, place, (self.image + value) & 0xFFFFFFFFFFFFFFFF)
