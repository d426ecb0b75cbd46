"""Whose code the sampled blocks of a CPU candidate are, where the name of the mapped file does not say it.

A library that was copied under another name, or into memory without a file, is recognised by its code: several blocks
stand in an installed library at the same distances from one another. The functions of Sleef, which PyTorch's library
exports and `at::vec::Vectorized` calls, are arithmetic like libm's and not a computation of PyTorch's.
"""

from __future__ import annotations

import bisect
import struct
import sysconfig
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hkbench.profile import elf

SLEEF = "[Sleef]"  #: the file of its functions, whichever library they lie in
BLOCK_BYTES = 64
MIN_BLOCKS = 3  #: at one distance; fewer can be alike by chance
MIN_DISTINCT_BYTES = 12  #: of a block; padding and the like stands in every library
MAX_BLOCKS = 1024  #: looked for, those with the most samples first
MAX_HITS = 16  #: places of one block in one library
_CHUNK = 1 << 17  # blocks looked at in one go
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_BITS = 16
#: Shared libraries that compute, below the folder of the installed packages; not those for a GPU, nor compilers.
_PACKAGES = ("*.so*", "*.libs/*.so*", "*/*.so*", "*/*/*.so*", "*/lib/*.so*")
_NOT_THESE = ("triton", "nvidia")
_SYSTEM = tuple(
    f"{folder}/lib{name}*.so*"
    for folder in ("usr/lib/*", "usr/lib/*/*", "usr/lib64", "usr/local/lib", "opt/intel/oneapi/*/latest/lib")
    for name in ("openblas", "blas", "cblas", "lapack", "mkl_", "dnnl", "blis", "atlas", "fftw3")
)


class Place(NamedTuple):
    """Where a thread was: which block of which mapped file, and the block itself (see sandbox/sampler.py)."""

    path: str
    offset: int = 0  #: of the block in the file
    code: bytes = b""


def files_of(counts: Mapping[Place, float], own: Collection[str]) -> dict[Place, str]:
    """Return for each place the file that its code belongs to.

    `counts`: samples by place; `own`: the paths of mapped files that count as the candidate's. It is the mapped file
    itself, but for `SLEEF` and for an installed library whose code was copied.
    """
    found = {place: SLEEF if _is_sleef(place) else place.path for place in counts}
    mine = sorted((place for place in counts if place.path in own and _tells(place.code)), key=lambda p: -counts[p])
    return found | copied(mine[:MAX_BLOCKS], installed()) if mine else found


def copied(places: Collection[Place], libraries: Iterable[Path]) -> dict[Place, str]:
    """Find the places whose code stands in one of these libraries, with the library of each.

    At least `MIN_BLOCKS` blocks of a mapped file have to be as far from one another as they are in the library.
    """
    wanted: dict[bytes, list[Place]] = defaultdict(list)
    for place in places:
        wanted[place.code].append(place)
    found: dict[Place, str] = {}
    for library in libraries if wanted else ():
        distances: dict[tuple[str, int], set[Place]] = defaultdict(set)
        for code, offset in _hits(library, wanted.keys()):
            for place in wanted[code]:
                distances[place.path, offset - place.offset].add(place)
        for alike in distances.values():
            if len({place.code for place in alike}) >= MIN_BLOCKS:
                found |= dict.fromkeys(alike, str(library))
    return found


@lru_cache(maxsize=1)
def installed() -> tuple[Path, ...]:
    """List the shared libraries of this environment and of the system that can compute something, each file once."""
    found: dict[Path, None] = {}
    for root in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        paths = (path for pattern in _PACKAGES for path in Path(root).glob(pattern))
        computing = (path for path in paths if path.relative_to(root).parts[0] not in _NOT_THESE)
        found |= {path.resolve(): None for path in computing}
    return tuple(found | {path.resolve(): None for pattern in _SYSTEM for path in Path("/").glob(pattern)})


def _hits(library: Path, codes: Collection[bytes]) -> Iterator[tuple[bytes, int]]:
    """Find the blocks of a library that are among these, each with its place in the file."""
    try:
        yield from _in_segments(np.memmap(library, np.uint8, "r"), codes)
    except (OSError, ValueError, struct.error):
        return  # a linker script, or a file that is cut: its code cannot run


def _in_segments(content: np.typing.NDArray[np.uint8], codes: Collection[bytes]) -> Iterator[tuple[bytes, int]]:
    first_words = np.unique(np.array([np.frombuffer(code, "<u8", 1)[0] for code in codes], np.uint64))
    table = np.zeros(1 << _BITS, bool)
    table[_slot(first_words)] = True
    left = dict.fromkeys(codes, MAX_HITS)
    for segment in elf.segments(content.data):
        if not segment.executable:
            continue
        begin = -(-segment.offset // BLOCK_BYTES) * BLOCK_BYTES
        end = min(segment.offset + segment.size, len(content))
        for at in range(begin, end, _CHUNK * BLOCK_BYTES):
            whole = (min(end, at + _CHUNK * BLOCK_BYTES) - at) // BLOCK_BYTES
            words = content[at : at + whole * BLOCK_BYTES].view("<u8")[:: BLOCK_BYTES // 8]
            likely = np.flatnonzero(table[_slot(words)])
            for number in likely[np.isin(words[likely], first_words)]:
                offset = at + int(number) * BLOCK_BYTES
                code = content[offset : offset + BLOCK_BYTES].tobytes()
                if left.get(code, 0):
                    left[code] -= 1
                    yield code, offset


def _slot(words: np.typing.NDArray[np.uint64]) -> np.typing.NDArray[np.uint64]:
    return (words * _FACTOR) >> np.uint64(64 - _BITS)


def _tells(code: bytes) -> bool:
    return len(code) == BLOCK_BYTES and len(set(code)) >= MIN_DISTINCT_BYTES


def _is_sleef(place: Place) -> bool:
    if Path(place.path).name != "libtorch_cpu.so" or place.path not in _torch_libraries():
        return False
    begins, ends = _sleef(place.path)
    # The middle decides where a function ends within the block.
    middle = place.offset + BLOCK_BYTES // 2
    at = bisect.bisect_right(begins, middle) - 1
    return at >= 0 and middle < ends[at]


@lru_cache(maxsize=1)
def _torch_libraries() -> frozenset[str]:
    """List the paths of the installed libtorch_cpu.so, with its links and without."""
    spec = find_spec("torch")
    folders = spec.submodule_search_locations or () if spec else ()
    paths = [Path(folder) / "lib" / "libtorch_cpu.so" for folder in folders]
    return frozenset(map(str, (*paths, *(path.resolve() for path in paths))))


@lru_cache(maxsize=4)
def _sleef(path: str) -> tuple[list[int], list[int]]:
    """List where functions of Sleef begin and end in a library, both in order; none if it cannot be read."""
    try:
        spans = elf.functions(Path(path), "Sleef_")
    except (OSError, struct.error, ValueError):
        return [], []
    joined: list[tuple[int, int]] = []
    for begin, end in spans:
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return [begin for begin, _ in joined], [end for _, end in joined]
