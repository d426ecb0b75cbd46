"""The device code that a file carries for AMD's GPUs: bundles of code objects, one for each translation unit.

Clang's page on its offload bundler describes the form, packed bundles ("CCOB") too. A code object is an ELF file in
which each kernel has a descriptor, a symbol that is called after it and ends in `.kd`.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator

import zstandard

from hkbench.profile import elf
from hkbench.profile.fatbin import Container, UnknownFormat

SECTION = ".hip_fatbin"
_MAGIC, _PACKED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
_COUNT = struct.Struct("<Q")
_ENTRY = struct.Struct("<QQQ")  # place and size of a code object, and bytes of its name, which follows
#: Of a packed bundle by its version: its size where it is said, and how long it is otherwise.
_HEADS = {1: struct.Struct("<4sHHIQ"), 2: struct.Struct("<4sHHIIQ"), 3: struct.Struct("<4sHHQQQ")}
_VERSION, _ZSTD = struct.Struct("<4xHH"), 1
_MAX_ENTRIES = 256
_BEGINNING = re.compile(re.escape(_MAGIC) + b"|" + re.escape(_PACKED))
_NOT_FILLING = re.compile(rb"[^\0]")
_DESCRIPTOR = b".kd"


def containers(section: memoryview) -> Iterator[Container]:
    """Read all bundles of a section.

    Raises:
        UnknownFormat: something else than a bundle or filling lies there, or one cannot be unpacked.
    """
    at = 0
    while found := _NOT_FILLING.search(section, at):
        at = found.start()
        if section[at : at + len(_MAGIC)] == _MAGIC:
            end, kernels = _read(section[at:])
        elif section[at : at + len(_PACKED)] == _PACKED:
            end, bundle = _unpacked(section[at:])
            _, kernels = _read(memoryview(bundle))
        else:
            raise UnknownFormat(f"at {at:#x} of {SECTION} begins no bundle")
        yield Container(at, at + end, kernels)
        at += end


def emptied(_bundle: memoryview) -> bytes:
    """Return a bundle in which nothing is."""
    return _MAGIC + _COUNT.pack(0)


def _read(bundle: memoryview) -> tuple[int, frozenset[str]]:
    """Return where a bundle ends, and its kernels' mangled names."""
    try:
        (count,) = _COUNT.unpack_from(bundle, len(_MAGIC))
        at, end, kernels = len(_MAGIC) + _COUNT.size, 0, set[str]()
        if count > _MAX_ENTRIES:
            raise UnknownFormat(f"a bundle of {count} code objects")
        for _ in range(count):
            place, size, length = _ENTRY.unpack_from(bundle, at)
            at += _ENTRY.size + length
            if place + size > len(bundle):
                raise UnknownFormat("a code object goes on behind its section")
            kernels |= _kernels(bundle[place : place + size])
            end = max(end, at, place + size)
    except struct.error as error:
        raise UnknownFormat(f"a bundle is cut: {error}") from error
    return max(end, at), frozenset(kernels)


def _kernels(code: memoryview) -> set[str]:
    names = elf.sections(code).get(".dynstr")
    if names is None:  # the host's entry
        return set()
    symbols = bytes(code[names.offset : names.offset + names.size]).split(b"\0")
    return {name.removesuffix(_DESCRIPTOR).decode(errors="replace") for name in symbols if name.endswith(_DESCRIPTOR)}


def _unpacked(packed: memoryview) -> tuple[int, bytes]:
    """Return where a packed bundle ends, and what is in it."""
    version, method = _VERSION.unpack_from(packed)
    if version not in _HEADS:
        raise UnknownFormat(f"a packed bundle of version {version}")
    head = _HEADS[version]
    said = head.unpack_from(packed)
    if version == 1:  # it does not say where it ends
        following = _BEGINNING.search(packed, len(_PACKED))
        end = len(packed) if following is None else following.start()
    else:
        end = said[3]
    if not head.size < end <= len(packed):
        raise UnknownFormat("a packed bundle goes on behind its section")
    content = bytes(packed[head.size : end])
    try:
        if method == _ZSTD:
            return end, zstandard.ZstdDecompressor().decompressobj().decompress(content)
        return end, zlib.decompressobj().decompress(content)
    except (zstandard.ZstdError, zlib.error) as error:
        raise UnknownFormat(f"a bundle cannot be unpacked: {error}") from error
