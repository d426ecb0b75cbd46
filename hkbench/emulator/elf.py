"""Read an AMDGPU code object: segments, symbols, relocations and the note of metadata. Hostile ones are refused."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from hkbench.emulator.listing import ADDRESS_LIMIT, BadCodeObject

MACHINE = 224  #: EM_AMDGPU
ARCHS = {0x4C: "gfx942", 0x4F: "gfx950"}  #: e_flags, the low byte
_COUNT_LIMIT = 1 << 20
MAX_HEADERS = 64  #: of segments; of sections. A compiler makes 8 and 20
_PT_LOAD, _PT_NOTE = 1, 4
_SHT_SYMTAB, _SHT_RELA, _SHT_DYNSYM, _SHF_ALLOC = 2, 4, 11, 2
_R_ABS64, _R_RELATIVE64 = 3, 13
_NOTE_METADATA = 32

Value = None | bool | int | float | str | bytes | list["Value"] | dict["Value", "Value"]


@dataclass(frozen=True)
class Segment:
    """What is loaded: where, and whether it may be written."""

    address: int
    size: int
    content: bytes
    writable: bool


@dataclass
class CodeObject:
    """The parts of a code object that a launch needs."""

    arch: str
    segments: list[Segment] = field(default_factory=list)
    symbols: dict[str, int] = field(default_factory=dict)  #: name -> address
    sizes: dict[str, int] = field(default_factory=dict)  #: name -> bytes
    relocations: list[tuple[int, int]] = field(default_factory=list)  #: address, and what the base is added to
    metadata: dict[Value, Value] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return max((segment.address + segment.size for segment in self.segments), default=0)


def read(content: bytes) -> CodeObject:
    """Return a code object's parts. Raises BadCodeObject."""
    try:
        return _read(content)
    except (struct.error, IndexError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise BadCodeObject(f"it is cut off or damaged ({error})") from error


def _read(content: bytes) -> CodeObject:
    if content[:6] != b"\x7fELF\x02\x01":
        raise BadCodeObject("it is no 64-bit little-endian ELF file")
    machine = struct.unpack_from("<H", content, 18)[0]
    flags = struct.unpack_from("<I", content, 48)[0]
    if machine != MACHINE or (flags & 0xFF) not in ARCHS:
        raise BadCodeObject(f"it is not for {' or '.join(ARCHS.values())} (e_flags {flags:#x})")
    found = CodeObject(ARCHS[flags & 0xFF])
    phoff, shoff = struct.unpack_from("<QQ", content, 32)
    phentsize, phnum, shentsize, shnum = struct.unpack_from("<HHHH", content, 54)
    if phnum > MAX_HEADERS or shnum > MAX_HEADERS:
        raise BadCodeObject(f"it has {phnum} program headers and {shnum} sections")
    for n in range(phnum):
        _program_header(found, content, phoff + n * phentsize)
    if found.size > ADDRESS_LIMIT:
        raise BadCodeObject(f"it wants {found.size} bytes of memory")
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, shoff + n * shentsize) for n in range(shnum)]
    for section in sections:
        if section[1] in (_SHT_SYMTAB, _SHT_DYNSYM):
            strings = sections[section[6]]
            _symbols(found, content, section[4], section[5], _slice(content, strings[4], strings[5]))
    for section in sections:
        if section[1] == _SHT_RELA:
            _relocations(found, content, section, sections)
    return found


def _slice(content: bytes, offset: int, size: int) -> bytes:
    if offset + size > len(content):
        raise BadCodeObject("a part of it lies beyond its end")
    return content[offset : offset + size]


def _program_header(found: CodeObject, content: bytes, at: int) -> None:
    kind, flags, offset, address, _, filesz, memsz, _ = struct.unpack_from("<IIQQQQQQ", content, at)
    if kind == _PT_LOAD:
        if memsz < filesz or address + memsz > ADDRESS_LIMIT:
            raise BadCodeObject("a segment is too large")
        found.segments.append(Segment(address, memsz, _slice(content, offset, filesz), bool(flags & 2)))
    elif kind == _PT_NOTE:
        notes = _slice(content, offset, filesz)
        at = 0
        while at + 12 <= len(notes):
            name_size, size, type_ = struct.unpack_from("<III", notes, at)
            name = notes[at + 12 : at + 12 + name_size]
            begin = at + 12 + (name_size + 3 & ~3)
            if type_ == _NOTE_METADATA and name == b"AMDGPU\0":
                value, _ = unpack(_slice(notes, begin, size), 0)
                found.metadata = value if isinstance(value, dict) else {}
            at = begin + (size + 3 & ~3)


def _symbols(found: CodeObject, content: bytes, offset: int, size: int, strings: bytes) -> None:
    for n in range(min(size // 24, _COUNT_LIMIT)):
        name, _, _, section, value, extent = struct.unpack_from("<IBBHQQ", content, offset + 24 * n)
        end = strings.find(b"\0", name)
        if name and section and end >= 0:
            text = strings[name:end].decode("utf-8", "replace")
            found.symbols[text], found.sizes[text] = value, extent


def _relocations(found: CodeObject, content: bytes, section: tuple[int, ...], sections: list[tuple[int, ...]]) -> None:
    _, _, flags, _, offset, size, link, *_ = section
    if not flags & _SHF_ALLOC:
        return  # of debug information
    for n in range(min(size // 24, _COUNT_LIMIT)):
        place, info, addend = struct.unpack_from("<QQq", content, offset + 24 * n)
        kind, symbol = info & 0xFFFFFFFF, info >> 32
        value = 0
        if symbol:
            table = sections[link]
            _, _, _, defined, value, _ = struct.unpack_from("<IBBHQQ", content, table[4] + 24 * symbol)
            if not defined:
                raise BadCodeObject("it refers to a symbol that it does not define")
        if kind not in (_R_ABS64, _R_RELATIVE64):
            raise BadCodeObject(f"it has a relocation of kind {kind}")
        if place + 8 > found.size:
            raise BadCodeObject("a relocation lies beyond its end")
        found.relocations.append((place, value + addend))


def unpack(data: bytes, at: int, depth: int = 0) -> tuple[Value, int]:
    """Return the MessagePack value at `at`, and where it ends. Raises BadCodeObject, struct.error, IndexError."""
    if depth > 16:
        raise BadCodeObject("its metadata is nested too deeply")
    tag = data[at]
    at += 1
    if tag <= 0x7F:
        return tag, at
    if tag >= 0xE0:
        return tag - 256, at
    if tag <= 0x8F:
        return _map(data, at, tag & 15, depth)
    if tag <= 0x9F:
        return _array(data, at, tag & 15, depth)
    if tag <= 0xBF:
        return _slice(data, at, tag & 31).decode(), at + (tag & 31)
    simple: dict[int, Value] = {0xC0: None, 0xC2: False, 0xC3: True}
    if tag in simple:
        return simple[tag], at
    numbers = {
        0xCC: "B",
        0xCD: "H",
        0xCE: "I",
        0xCF: "Q",
        0xD0: "b",
        0xD1: "h",
        0xD2: "i",
        0xD3: "q",
        0xCA: "f",
        0xCB: "d",
    }
    if tag in numbers:
        form = ">" + numbers[tag]
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    sized = {0xD9: "B", 0xDA: "H", 0xDB: "I", 0xDC: "H", 0xDD: "I", 0xDE: "H", 0xDF: "I"}
    if tag not in sized:
        raise BadCodeObject(f"its metadata has a value of type {tag:#x}")
    form = ">" + sized[tag]
    (count,) = struct.unpack_from(form, data, at)
    at += struct.calcsize(form)
    if tag <= 0xDB:
        return _slice(data, at, count).decode(), at + count
    return _array(data, at, count, depth) if tag <= 0xDD else _map(data, at, count, depth)


def _array(data: bytes, at: int, count: int, depth: int) -> tuple[Value, int]:
    values: list[Value] = []
    for _ in range(count):
        value, at = unpack(data, at, depth + 1)
        values.append(value)
    return values, at


def _map(data: bytes, at: int, count: int, depth: int) -> tuple[Value, int]:
    values: dict[Value, Value] = {}
    for _ in range(count):
        key, at = unpack(data, at, depth + 1)
        value, at = unpack(data, at, depth + 1)
        if isinstance(key, (list, dict)):
            raise BadCodeObject("its metadata has a key that is no name")
        values[key] = value
    return values, at
