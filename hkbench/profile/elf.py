"""The parts of ELF files that tell whose code runs: executable segments, and the places of named functions."""

from __future__ import annotations

import mmap
import re
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, least significant byte first
_HEADER = struct.Struct("<32xQQ6xHHHH")  # tables of segments and sections: places, sizes and numbers of entries
_SEGMENT = struct.Struct("<IIQQ8xQ16x")
_SECTION = struct.Struct("<4xI8xQQQI20x")
_LOAD, _EXECUTABLE, _DYNAMIC_SYMBOLS = 1, 1, 11
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


def functions(path: Path, prefix: str) -> list[tuple[int, int]]:
    """List where the exported functions lie whose names begin so: (first byte, end) in the file, in order.

    Raises:
        OSError, struct.error, ValueError: the file cannot be read, or is cut
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        loaded = segments(content)
        if not loaded:
            return []
        _, table, _, _, size, count = _HEADER.unpack_from(content)
        sections = [_SECTION.unpack_from(content, table + number * size) for number in range(count)]
        spans: list[tuple[int, int]] = []
        for kind, _, offset, length, link in sections:
            if kind != _DYNAMIC_SYMBOLS:
                continue
            symbols = np.frombuffer(content[offset : offset + length], _SYMBOL)
            _, _, begin, names_size, _ = sections[link]
            names = content[begin : begin + names_size]
            wanted = [found.start() + 1 for found in re.finditer(b"\0" + re.escape(prefix.encode()), names)]
            for symbol in symbols[np.isin(symbols["name"], wanted) & (symbols["size"] > 0)]:
                at = _offset(loaded, int(symbol["at"]))
                spans += [(at, at + int(symbol["size"]))] if at is not None else []
        return sorted(spans)


def _offset(loaded: tuple[Segment, ...], address: int) -> int | None:
    for segment in loaded:
        if segment.executable and segment.address <= address < segment.address + segment.size:
            return address - segment.address + segment.offset
    return None
