"""Copies of the machine's GPU libraries that hold no device code that computes, for the candidates of track `own`.

Whose kernels ran is told by the candidate's process, which can lie. Where its runner sees these copies instead of the
libraries there is nothing to lie about: PyTorch has its kernels that copy, fill, concatenate and draw random numbers,
and cuBLAS, cuDNN and their like answer each call with an error. Only NVIDIA's libraries are known here.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import re
import struct
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from hkbench.profile import elf, fatbin

_VERSION = 1  #: of the copies; another one makes them anew
UNUSED_DAYS = 30
_MIN_BYTES = 1 << 16  #: smaller libraries compute nothing on a GPU
#: Libraries of mathematics: each of their functions is to fail, as they hold kernels in forms of their own too.
_MATHEMATICS = re.compile(
    r"lib(?:cublas|cublasLt|nvblas|cudnn\w*|cufftw?|cusparse|cusparseLt|cusolver|cusolverMg|cutensor\w*|cudss|npp\w*)"
    r"(?:_static\w*)?\.(so[.\d]*|a)"
)
_ELSEWHERE = ("/proc", "/sys", "/dev")
#: Kernels by parts of their mangled names: those that `profile/ownership.py` calls housekeeping, and those that draw
#: numbers or count, which constructors call. A translation unit stays if it holds no others.
_KEPT = re.compile(
    r"FillFunctor|direct_copy_kernel|(?:bfloat16|float16|float8)_copy_kernel|CatArrayBatchedCopy|neg_conj_kernel"
    r"|copy_device_to_device|spin_kernel|distribution_elementwise_grid_stride_kernel|elementwise_kernel_with_index"
)
#: Sections that the dynamic loader needs; of a library whose functions fail all others are zeros.
_LOADED = re.compile(
    r"\.(?:dyn(?:sym|str|amic)|(?:gnu\.)?hash|gnu\.version(?:_[rd])?|rel[ar]?\w*\.\w+|(?:init|fini)(?:_array)?"
    r"|plt[.\w]*|got[.\w]*|note[.\w-]*|relr\.dyn)"
)
_SIMPLE = re.compile(_KEPT.pattern + r"|elementwise_kernel|reduce_kernel|cub\w*EmptyKernel")
_SLOT = 8  #: bytes: a function begins at a multiple of it
_EMPTY_ARCHIVE = b"!<arch>\n"


def replaced_files(roots: Iterable[str], store: Path, simple: bool = False) -> dict[str, str]:
    """Return the libraries below `roots` -> their copies in `store`, which are made where they are not there.

    `simple`: PyTorch's kernels that work element by element or reduce are kept as well.

    Raises:
        fatbin.UnknownFormat: a library's device code cannot be read.
        OSError: a copy cannot be written.
    """
    store.mkdir(parents=True, exist_ok=True)
    kept = _SIMPLE if simple else _KEPT
    return {str(path): str(copy) for path in _libraries(roots) if (copy := _copy(path, store, kept)) is not None}


def _libraries(roots: Iterable[str]) -> Iterator[Path]:
    """Yield the shared and static libraries, each file once."""
    seen: set[tuple[int, int]] = set()
    for root in roots:
        for folder, _, names in os.walk(root):
            for name in names:
                if ".so" not in name and not name.endswith(".a"):
                    continue
                path = Path(folder, name)
                try:
                    found = path.lstat()
                except OSError:
                    continue
                if found.st_size < _MIN_BYTES or path.is_symlink() or (found.st_dev, found.st_ino) in seen:
                    continue
                seen.add((found.st_dev, found.st_ino))
                yield path


def _copy(path: Path, store: Path, kept: re.Pattern[str]) -> Path | None:
    """Return the copy of a library; None: it stays as it is."""
    mathematics = _MATHEMATICS.fullmatch(path.name) is not None
    if path.suffix == ".a" and not mathematics:
        return None
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            section = elf.sections(content).get(fatbin.SECTION)
        except struct.error:
            return None  # cut: nobody can load it
        if section is None and not mathematics:
            return None
        state = path.stat()
        key = hashlib.sha256(
            repr((_VERSION, kept.pattern * (not mathematics), str(path), state.st_size, state.st_mtime_ns)).encode()
        ).hexdigest()
        copy = store / key
        if not copy.exists():
            parts = _failing(content) if mathematics else _without_kernels(content, section, kept)
            _write(copy, len(content) if path.suffix != ".a" else 0, parts)
        os.utime(copy)
        return copy


def _write(copy: Path, size: int, parts: Iterable[tuple[int, bytes | memoryview]]) -> None:
    """Write the parts at their places, zeros between them, at once for whoever looks."""
    with tempfile.NamedTemporaryFile(dir=copy.parent, delete=False) as file:
        for offset, part in parts:
            os.pwrite(file.fileno(), part, offset)
        os.ftruncate(file.fileno(), max(size, os.fstat(file.fileno()).st_size))
        os.fchmod(file.fileno(), 0o755)
    Path(file.name).rename(copy)


def _without_kernels(
    content: mmap.mmap, section: elf.Section | None, kept: re.Pattern[str]
) -> Iterator[tuple[int, memoryview]]:
    """Yield all of a library but the containers of device code that computes; of those the heads, with nothing in."""
    assert section is not None
    whole = memoryview(content)
    device_code = whole[section.offset : section.offset + section.size]
    yield 0, whole[: section.offset]
    yield section.offset + section.size, whole[section.offset + section.size :]
    for container in fatbin.containers(device_code):
        stays = bool(container.kernels) and all(map(kept.search, container.kernels))
        code = device_code[container.begin : container.end]
        yield section.offset + container.begin, code if stays else memoryview(fatbin.emptied(code))


def _failing(content: mmap.mmap) -> Iterator[tuple[int, bytes | memoryview]]:
    """Yield what is left of a library whose functions do nothing but return an error, or of an archive of such."""
    if content[: len(_EMPTY_ARCHIVE)] == _EMPTY_ARCHIVE:
        yield 0, _EMPTY_ARCHIVE
        return
    whole, sections = memoryview(content), elf.sections(content)
    yield 0, whole[: elf.segments_end(content)]
    for name, section in sections.items():
        if section.in_file and _LOADED.fullmatch(name):
            yield section.offset, whole[section.offset : section.offset + section.size]
    code, zeros = sections[".text"], sections[".rodata"]
    yield code.offset, _returning(code, zeros.address)


def _returning(code: elf.Section, zeros: int) -> bytes:
    """Return machine code that returns at every place where a function can begin.

    The result is the address of zeros in the file's memory: as a status it is an error that nobody knows, as a text it
    is empty.
    """
    count = code.size // _SLOT
    if os.uname().machine == "aarch64":
        return struct.pack("<II", 0x10000000, 0xD65F03C0) * count  # adr x0, here (its first byte is zero); ret
    words = np.zeros(count, np.dtype([("lea", "S3"), ("by", "<i4"), ("ret", "u1")]))
    words["lea"], words["ret"] = b"\x48\x8d\x05", 0xC3  # lea rax, [rip + by]; ret
    words["by"] = zeros - (code.address + _SLOT * np.arange(count) + _SLOT - 1)
    return words.tobytes()


def forget_unused(store: Path) -> None:
    """Remove the copies that no run has used for `UNUSED_DAYS`: an upgrade leaves gigabytes behind."""
    oldest = time.time() - UNUSED_DAYS * 86_400
    for copy in store.iterdir():
        with contextlib.suppress(OSError):  # another run may do the same
            if copy.stat().st_mtime < oldest:
                copy.unlink()
