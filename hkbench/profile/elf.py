"""The parts of ELF files that tell whose code runs: executable segments, and the places of named functions."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, least significant byte first
#: Tables of segments and sections: places, sizes and numbers of entries; the section that holds the sections' names.
_HEADER = struct.Struct("<32xQQ6xHHHHH")
_SEGMENT = struct.Struct("<IIQQ8xQ16x")
_SECTION = struct.Struct("<II8xQQQI20x")
_LOAD, _EXECUTABLE, _NO_BITS = 1, 1, 8
_SYMBOLS, _DYNAMIC_SYMBOLS = 2, 11
_TYPE, _FUNCTION = 15, 2  # of a symbol: the bits that tell its type, and that of a function
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("at", "<u8"), ("size", "<u8")]
)


@dataclass(frozen=True)
class Segment:
    """A part of a file that is mapped as one."""

    offset: int  #: in the file
    address: int
    size: int  #: bytes in the file
    executable: bool


def segments(content: bytes | mmap.mmap | memoryview) -> tuple[Segment, ...]:
    """List the segments of a file that are loaded; none where it is not a 64-bit ELF file.

    Raises:
        struct.error: the file is cut
    """
    if content[: len(_MAGIC)] != _MAGIC:
        return ()
    table, _, size, count, *_ = _HEADER.unpack_from(content)
    found = []
    for number in range(count):
        kind, flags, offset, address, length = _SEGMENT.unpack_from(content, table + number * size)
        if kind == _LOAD:
            found.append(Segment(offset, address, length, bool(flags & _EXECUTABLE)))
    return tuple(found)


@dataclass(frozen=True)
class Section:
    """A named part of a file."""

    offset: int  #: in the file
    address: int
    size: int  #: bytes
    in_file: bool  #: whether they stand in the file; else they are zeros


def sections(content: bytes | mmap.mmap | memoryview) -> dict[str, Section]:
    """Return the sections of a file by name; of several that are called the same the last; none where it is not ELF.

    Raises:
        struct.error: the file is cut
    """
    if content[: len(_MAGIC)] != _MAGIC:
        return {}
    found, names = _section_table(content)
    if names >= len(found):
        return {}
    begin, length = found[names][3:5]
    text = bytes(content[begin : begin + length])
    return {
        text[name : text.find(b"\0", name)].decode(errors="replace"): Section(offset, address, length, kind != _NO_BITS)
        for name, kind, address, offset, length, _ in found
    }


def _section_table(content: bytes | mmap.mmap | memoryview) -> tuple[list[tuple[int, ...]], int]:
    """Return the entries of the table of sections, and the number of the section that holds their names."""
    _, table, _, _, size, count, names = _HEADER.unpack_from(content)
    return [_SECTION.unpack_from(content, table + number * size) for number in range(count)], names


def segments_end(content: bytes | mmap.mmap | memoryview) -> int:
    """Return where the file's head and its table of segments end, which begin the file."""
    table, _, size, count, *_ = _HEADER.unpack_from(content)
    return int(table + size * count)


class Functions:
    """Tell the function at a place of a file, by its symbols; where only exported ones are left, by those."""

    def __init__(self, path: Path) -> None:
        """Read the table of symbols.

        Raises:
            OSError, struct.error, ValueError: the file cannot be read, or is cut
        """
        with path.open("rb") as file:
            self.content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._segments = tuple(part for part in segments(self.content) if part.executable)
        self._symbols = np.empty(0, _SYMBOL)
        self._names = 0  # where the names begin in the file
        tables = self._tables() if self._segments else {}
        for kind in (_SYMBOLS, _DYNAMIC_SYMBOLS):
            if kind in tables:
                offset, size, self._names = tables[kind]
                symbols = np.frombuffer(self.content[offset : offset + size], _SYMBOL)
                named = symbols[(symbols["info"] & _TYPE == _FUNCTION) & (symbols["size"] > 0)]
                self._symbols = named[np.argsort(named["at"], kind="stable")]
                return

    def name(self, offset: int) -> str:
        """Return the mangled name of the function at this place in the file; empty where no symbol lies over it."""
        for part in self._segments:
            if part.offset <= offset < part.offset + part.size:
                return self._at(offset - part.offset + part.address)
        return ""

    def _at(self, address: int) -> str:
        number = int(np.searchsorted(self._symbols["at"], address, "right")) - 1
        if number < 0:
            return ""
        symbol = self._symbols[number]
        if address >= int(symbol["at"]) + int(symbol["size"]):
            return ""
        begin = self._names + int(symbol["name"])
        return self.content[begin : self.content.find(b"\0", begin)].decode(errors="replace")

    def _tables(self) -> dict[int, tuple[int, int, int]]:
        """Return the kind of each table of symbols -> its place and size, and the place of its names."""
        found, _ = _section_table(self.content)
        kinds = (_SYMBOLS, _DYNAMIC_SYMBOLS)
        return {kind: (at, length, found[link][3]) for _, kind, _, at, length, link in found if kind in kinds}
