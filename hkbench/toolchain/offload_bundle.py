"""Bundles of code objects for AMD's GPUs, as Clang's offload bundler writes them: one for each translation unit.

Clang's page on it describes the form, packed bundles ("CCOB") too.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import zstandard

SECTION = ".hip_fatbin"
MAGIC, PACKED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
_COUNT = struct.Struct("<Q")
_ENTRY = struct.Struct("<QQQ")  # place and size of a code object, and bytes of its name, which follows
#: Of a packed bundle by its version; the first does not say its size, which the others have in the fourth place.
_HEADS = {1: struct.Struct("<4sHHIQ"), 2: struct.Struct("<4sHHIIQ"), 3: struct.Struct("<4sHHQQQ")}
_VERSION, _ZSTD = struct.Struct("<4xHH"), 1
_MAX_ENTRIES = 256
_NOT_FILLING = re.compile(rb"[^\0]")  # bundles begin at multiples of 4096, filled up with zeros


class BadBundle(Exception):
    """Something is no bundle, or is cut off."""


class Image(NamedTuple):
    """One entry of a bundle: for what it is, and where it lies, from the beginning of what was read."""

    target: str  #: "hipv4-amdgcn-amd-amdhsa--gfx942"; the host's is empty
    begin: int
    end: int


class Bundle(NamedTuple):
    """Where a bundle lies in a section, and its code objects."""

    begin: int
    end: int
    code_objects: tuple[memoryview, ...]


def bundles(section: memoryview) -> Iterator[Bundle]:
    """Read all bundles of a section, packed ones too.

    Raises:
        BadBundle: something else than a bundle or filling lies there, or one cannot be unpacked.
    """
    at = 0
    while (at := next_bundle(section, at)) < len(section):
        if section[at : at + len(PACKED)] == PACKED:
            end, content = _unpacked(section[at:])
            bundle, end = memoryview(content), at + end
            images, _ = images_at(bundle, 0, _MAX_ENTRIES)
        else:
            bundle = section
            images, end = images_at(section, at, _MAX_ENTRIES)
        yield Bundle(at, end, tuple(bundle[image.begin : image.end] for image in images))
        at = end


def next_bundle(section: bytes | memoryview, at: int) -> int:
    """Return where the next bundle begins, behind what fills up the last one; the section's end where none follows."""
    found = _NOT_FILLING.search(section, at)
    return found.start() if found else len(section)


def images_at(content: bytes | memoryview, begin: int, most: int) -> tuple[list[Image], int]:
    """Return the images of the bundle that begins there, which are at `most` so many, and where the bundle ends.

    Raises:
        BadBundle: there is none, or it is cut off.
    """
    at = begin + len(MAGIC)
    if content[begin:at] != MAGIC:
        raise BadBundle(f"{SECTION} holds no Clang offload bundle")
    images = []
    try:
        (count,) = _COUNT.unpack_from(content, at)
        end = at = at + _COUNT.size
        if count > most:
            raise BadBundle(f"an offload bundle claims {count} entries")
        for _ in range(count):
            place, size, length = _ENTRY.unpack_from(content, at)
            named, at = at + _ENTRY.size, at + _ENTRY.size + length
            image = Image(bytes(content[named:at]).decode("ascii", "replace"), begin + place, begin + place + size)
            if max(image.end, at) > len(content):
                raise BadBundle("an offload bundle is cut off")
            images.append(image)
            end = max(end, at, image.end)
    except struct.error as error:
        raise BadBundle("an offload bundle is cut off") from error
    return images, end


def emptied(_bundle: memoryview) -> bytes:
    """Return a bundle in which nothing is."""
    return MAGIC + _COUNT.pack(0)


def _unpacked(packed: memoryview) -> tuple[int, bytes]:
    """Return where a packed bundle ends, and what is in it."""
    version, method = _VERSION.unpack_from(packed)
    if version not in _HEADS:
        raise BadBundle(f"a packed bundle of version {version}")
    head = _HEADS[version]
    end = len(packed) if version == 1 else head.unpack_from(packed)[3]
    if not head.size < end <= len(packed):
        raise BadBundle("a packed bundle goes on behind its section")
    opened = zstandard.ZstdDecompressor().decompressobj() if method == _ZSTD else zlib.decompressobj()
    try:
        content = opened.decompress(bytes(packed[head.size : end]))
    except (zstandard.ZstdError, zlib.error) as error:
        raise BadBundle(f"a bundle cannot be unpacked: {error}") from error
    return end - len(opened.unused_data), content
