"""Whose code the sampled blocks of a CPU candidate are, where the name of the mapped file does not say it.

A library that was copied under another name, or into memory without a file, is recognised by its code: several blocks
stand in an installed library at the same distances from one another. PyTorch's library holds functions of several
kinds, which its table of symbols tells apart: those that only copy, cast, fill or concatenate, those of Sleef, which
`at::vec::Vectorized` calls as other code calls libm, and those that generate code.
"""

from __future__ import annotations

import re
import struct
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hkbench.profile import elf

#: Files that stand for functions of PyTorch's library.
SLEEF = "[Sleef]"
COPIES = "[copies]"
GENERATORS = "[oneDNN or FBGEMM]"
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
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
_SYSTEM = tuple(
    f"{folder}/lib{name}*.so*"
    for folder in ("usr/lib/*", "usr/lib/*/*", "usr/lib64", "usr/local/lib", "opt/intel/oneapi/*/latest/lib")
    for name in ("openblas", "blas", "cblas", "lapack", "mkl_", "dnnl", "blis", "atlas", "fftw3")
)

#: Functions of PyTorch that copy, cast, fill, concatenate, or compare two tensors for the host. Mangled names hold each
#: identifier behind its length, so that `index_copy_kernel` is none of them; loops within a function carry its name.
_COPYING = (
    *("copy_kernel", "direct_copy_kernel", "reduced_float_copy_kernel", "bfloat16_copy_kernel", "copy_same_dtype"),
    *("float_bfloat16_copy_kernel", "copy_impl", "copy_same_type_transpose_", "foreach_tensor_copy_list_kernel_slow_"),
    *("fill_kernel", "fill_non_native_type", "fill_fast", "scalar_fill", "cpu_equal"),
    *("cat_serial_kernel", "cat_serial_kernel_impl", "stack_serial_kernel", "stack_serial_kernel_impl"),
    *(f"{name}_{set_}" for name in ("Float16ToFloat", "FloatToFloat16") for set_ in ("ref", "simd", "avx2", "avx512")),
)
_KINDS = (
    (SLEEF, re.compile(r"^Sleef_")),
    (COPIES, re.compile("|".join(f"{len(name)}{name}" for name in _COPYING))),
    (GENERATORS, re.compile(r"(?<!mk)dnnl|6fbgemm")),
)


class Place(NamedTuple):
    """Where a thread was: which block of which mapped file, and the block itself (see sandbox/sampler.py)."""

    path: str
    offset: int = 0  #: of the block in the file
    code: bytes = b""


def files_of(counts: Mapping[Place, float], own: Collection[str]) -> dict[Place, str]:
    """Return for each place the file that its code belongs to.

    `counts`: samples by place; `own`: the paths of mapped files that count as the candidate's. It is the mapped file
    itself, but for `SLEEF`, `COPIES` and `GENERATORS`, and for an installed library whose code was copied.
    """
    found = {place: _file_of(place) for place in counts}
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
    """List the shared libraries of all packages in sight and of the system that can compute something, each file once.

    An environment may see another one's packages: where PyTorch was there before, `make setup` makes it so.
    """
    found: dict[Path, None] = {}
    for root in (Path(folder) for folder in sys.path if Path(folder).name in _PACKAGE_FOLDERS):
        paths = (path for pattern in _PACKAGES for path in root.glob(pattern))
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


def _file_of(place: Place) -> str:
    """Return the file of a place, or what stands for the function of PyTorch's library that lies there."""
    if Path(place.path).name != "libtorch_cpu.so" or place.path not in _torch_libraries():
        return place.path
    functions = _functions(place.path)
    # A process can write over the library's code in its own memory: what is not the file's is no function of its.
    if functions is None or functions.content[place.offset : place.offset + BLOCK_BYTES] != place.code:
        return place.path
    # The middle decides where a function ends within the block.
    name = functions.name(place.offset + BLOCK_BYTES // 2)
    return next((kind for kind, names in _KINDS if names.search(name)), place.path)


@lru_cache(maxsize=1)
def _torch_libraries() -> frozenset[str]:
    """List the paths of the installed libtorch_cpu.so, with its links and without."""
    spec = find_spec("torch")
    folders = spec.submodule_search_locations or () if spec else ()
    paths = [Path(folder) / "lib" / "libtorch_cpu.so" for folder in folders]
    return frozenset(map(str, (*paths, *(path.resolve() for path in paths))))


@lru_cache(maxsize=4)
def _functions(path: str) -> elf.Functions | None:
    try:
        return elf.Functions(Path(path))
    except (OSError, struct.error, ValueError):
        return None
