"""The device code that a file carries for NVIDIA's GPUs: containers of machine code, one for each translation unit.

NVIDIA documents the format nowhere; it was read from PyTorch's libraries for CUDA 12.4 (packed by LZ4) and 13.0 (by
Zstandard). A container is a head of 16 bytes (magic number, version, size of the head, size of what follows) and
entries, each with a head of its own, for one GPU and of one kind.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import lz4.block
import zstandard

from hkbench.profile import elf

SECTION = ".nv_fatbin"
_MAGIC = 0xBA55ED50
_HEAD = struct.Struct("<IHHQ")  # magic number, version, bytes of the head, bytes of the entries
_ENTRY = struct.Struct("<HHIQIIIIIIQQQ")
_MACHINE_CODE = 2  # the kind of an entry; 1 is PTX
_LZ4, _ZSTD = 0x2000, 0x8000  # flags of an entry
_ALIGNMENT = 8


class UnknownFormat(Exception):
    """The device code of a file is not written as this module reads it."""


@dataclass(frozen=True)
class Container:
    """The device code of one translation unit: its place in the section, and its kernels' mangled names."""

    begin: int
    end: int
    kernels: frozenset[str]


def containers(section: memoryview) -> Iterator[Container]:
    """Read all containers of a section.

    Raises:
        UnknownFormat: something else than a container or padding lies there, or an entry cannot be unpacked.
    """
    at = 0
    while at + _HEAD.size <= len(section):
        magic, _, head, size = _HEAD.unpack_from(section, at)
        if magic == 0:
            at += _ALIGNMENT
            continue
        if magic != _MAGIC or at + head + size > len(section):
            raise UnknownFormat(f"at {at:#x} of {SECTION} begins no container")
        end = at + head + size
        yield Container(at, end, frozenset(_kernels(section[at + head : end])))
        at = end


def emptied(container: memoryview) -> bytes:
    """Return the head of a container in which nothing follows."""
    magic, version, head, _ = _HEAD.unpack_from(container)
    return _HEAD.pack(magic, version, head, 0)


def _kernels(entries: memoryview) -> Iterator[str]:
    """Yield the kernels of all entries; a kernel is machine code in a section of its own, which is called after it."""
    at = 0
    while at + _ENTRY.size <= len(entries):
        kind, _, head, padded, size, _, _, _, _, _, flags, _, unpacked = _ENTRY.unpack_from(entries, at)
        if head < _ENTRY.size or at + head + padded > len(entries):
            raise UnknownFormat("an entry is longer than its container")
        if kind == _MACHINE_CODE:
            begin = at + head
            code = _unpacked(entries[begin : begin + (size or padded)], flags, unpacked)
            try:
                sections = elf.sections(code)
            except struct.error as error:
                raise UnknownFormat(f"the machine code of an entry is cut: {error}") from error
            yield from (name[len(".text.") :] for name in sections if name.startswith(".text."))
        at += head + padded


def _unpacked(code: memoryview, flags: int, size: int) -> bytes:
    try:
        if flags & _ZSTD:
            return zstandard.ZstdDecompressor().decompress(bytes(code), max_output_size=size)
        if flags & _LZ4:
            return bytes(lz4.block.decompress(code, uncompressed_size=size))
    except (zstandard.ZstdError, lz4.block.LZ4BlockError) as error:
        raise UnknownFormat(f"an entry cannot be unpacked: {error}") from error
    return bytes(code)
