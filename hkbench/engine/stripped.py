"""Copies of the machine's GPU libraries that hold no device code that computes, for the candidates of track `own`.

Whose kernels ran is told by the candidate's process, which can lie. Where its runner sees these copies instead of the
libraries there is nothing to lie about: PyTorch has its kernels that copy, fill, concatenate and draw random numbers,
and cuBLAS, cuDNN and their like, or rocBLAS and MIOpen, answer each call with an error.
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
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

import numpy as np

from hkbench.fastbuild.pch_cache import UNUSED_DAYS
from hkbench.profile import elf, fatbin
from hkbench.profile.kernel_owner import HOUSEKEEPING
from hkbench.toolchain import offload_bundle

_DESCRIPTOR = b".kd"  #: how the symbol of an AMD kernel's descriptor ends
_VERSION = 1  #: of the copies; another one makes them anew
_MIN_BYTES = 1 << 16  #: smaller libraries compute nothing on a GPU
#: Libraries of mathematics: each of their functions is to fail, as they hold kernels in forms of their own too.
_MATHEMATICS = re.compile(
    r"lib(?:cublas|cublasLt|nvblas|cudnn\w*|cufftw?|cusparse|cusparseLt|cusolver|cusolverMg|cutensor\w*|cudss|npp\w*"
    r"|rocblas|hipblas|hipblaslt|MIOpen|rocfft|hipfftw?|rocsparse|hipsparse|hipsparselt|rocsolver|hipsolver|aotriton\w*"
    r"|device_\w+_operations)(?:_static\w*)?\.(so[.\d]*|a)"
)
#: Folders in which such libraries keep kernels.
_KERNELS = re.compile(r".*/(?:(?:rocblas|hipblaslt|hipsparselt)/library|aotriton\.images|miopen/db)")
#: The compiler by which PyTorch makes kernels of its own while it runs.
_COMPILER = re.compile(r"lib(?:nv|hip)rtc[\w.-]*\.(so[.\d]*|a)")
#: What generates code in a folder `torch/_inductor`, and what was compiled of it. Without these `torch.compile` fails;
#: what custom operators import of the folder works.
_INDUCTOR = "torch/_inductor"
_GENERATORS = ("codegen", "kernel", "__pycache__", "compile_fx.py", "graph.py", "lowering.py", "scheduler.py", "ir.py")
_ELSEWHERE = ("/proc", "/sys", "/dev")
#: Kernels by parts of their mangled names: those that `profile/ownership.py` calls housekeeping, and those that draw
#: numbers or count, which constructors call. A translation unit stays if it holds no others.
_KEPT = re.compile(
    HOUSEKEEPING.pattern + r"|neg_conj_kernel|spin_kernel|distribution_elementwise_grid_stride_kernel"
    r"|elementwise_kernel_with_index"
)
#: Sections that the dynamic loader needs; of a library whose functions fail all others are zeros.
_LOADED = re.compile(
    r"\.(?:dyn(?:sym|str|amic)|(?:gnu\.)?hash|gnu\.version(?:_[rd])?|rel[ar]?\w*\.\w+|(?:init|fini)_array"
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
    kept, failing = (_SIMPLE, (_MATHEMATICS,)) if simple else (_KEPT, (_MATHEMATICS, _COMPILER))
    replaced: dict[str, str] = {}
    for path in _libraries(roots):
        if path.is_dir():
            replaced |= _empty(path, store)
        else:
            copy = _copy(path, store, kept, any(names.fullmatch(path.name) for names in failing))
            replaced |= {} if copy is None else {str(path): str(copy)}
    return replaced


def _libraries(roots: Iterable[str]) -> Iterator[Path]:
    """Yield the shared and static libraries, each name of a file for itself, and folders of kernels and Inductors."""
    seen: set[Path] = set()
    for root in {Path(root).resolve() for root in roots if root not in _ELSEWHERE}:
        for folder, _, names in os.walk(root):
            paths = {Path(folder, name) for name in names if ".so" in name or name.endswith(".a")} - seen
            yield from (path for path in sorted(paths) if not path.is_symlink() and _is_large(path))
            seen |= paths
            if folder.endswith(_INDUCTOR) or _KERNELS.fullmatch(folder):
                yield Path(folder)


def _empty(place: Path, store: Path) -> dict[str, str]:
    """Return a folder of kernels, or what generates code in an installed Inductor -> an empty file or folder."""
    folder, file = store / "empty", store / "empty.py"
    folder.mkdir(exist_ok=True)
    file.touch()
    is_inductor = place.as_posix().endswith(_INDUCTOR)
    found = (path for name in _GENERATORS if (path := place / name).exists()) if is_inductor else [place]
    return {str(path): str(folder if path.is_dir() else file) for path in found}


def _is_large(path: Path) -> bool:
    try:
        return path.stat().st_size >= _MIN_BYTES and os.access(path, os.R_OK)
    except OSError:  # removed meanwhile
        return False


def _copy(path: Path, store: Path, kept: re.Pattern[str], fails: bool) -> Path | None:
    """Return the copy of a library, of which all functions are to fail if it `fails`; None: it stays as it is."""
    if path.suffix == ".a" and not fails:
        return None
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        sections = elf.sections(content)
    except struct.error:
        return None  # cut: nobody can load it
    if not fails and not _READERS.keys() & sections.keys():
        return None
    state, pattern = path.stat(), "" if fails else kept.pattern
    described = repr((_VERSION, pattern, str(path), state.st_size, state.st_mtime_ns))
    copy = store / hashlib.sha256(described.encode()).hexdigest()
    if not copy.exists():
        try:
            parts = _failing(content, sections) if fails else _without_kernels(content, sections, kept)
            _write(copy, 0 if path.suffix == ".a" else len(content), parts)
        except fatbin.UnknownFormat as error:
            raise fatbin.UnknownFormat(f"{path}: {error}") from error
    os.utime(copy)
    return copy


def _write(copy: Path, size: int, parts: Iterable[tuple[int, bytes | memoryview]]) -> None:
    """Write the parts at their places, zeros between them, at once for whoever looks."""
    with tempfile.TemporaryDirectory(dir=copy.parent) as folder:
        made = Path(folder, "copy")
        with made.open("wb") as file:
            for offset, part in parts:
                file.seek(offset)
                file.write(part)
            file.truncate(max(size, file.seek(0, os.SEEK_END)))
        made.chmod(0o755)
        made.rename(copy)


def _without_kernels(
    content: mmap.mmap, sections: Mapping[str, elf.Section], kept: re.Pattern[str]
) -> Iterator[tuple[int, memoryview]]:
    """Yield all of a library but the containers of device code that computes; of those the heads, with nothing in."""
    whole, at = memoryview(content), 0
    for name, section in sorted(sections.items(), key=lambda item: item[1].offset):
        if name not in _READERS:
            continue
        containers, emptied = _READERS[name]
        device_code = whole[section.offset : section.offset + section.size]
        for container in containers(device_code):
            if container.kernels and all(map(kept.search, container.kernels)):
                continue
            begin, end = section.offset + container.begin, section.offset + container.end
            yield at, whole[at:begin]
            yield begin, memoryview(emptied(whole[begin:end]))
            at = end
    yield at, whole[at:]


def _bundles(section: memoryview) -> Iterator[fatbin.Container]:
    """Read the bundles of AMD's code objects, in which each kernel has a descriptor."""
    try:
        for bundle in offload_bundle.bundles(section):
            yield fatbin.Container(bundle.begin, bundle.end, frozenset(chain(*map(_described, bundle.code_objects))))
    except offload_bundle.BadBundle as error:
        raise fatbin.UnknownFormat(str(error)) from error


def _described(code: memoryview) -> Iterator[str]:
    """Yield the kernels of a code object, of which the host's is empty."""
    try:
        names = elf.sections(code).get(".dynstr")
    except struct.error as error:
        raise fatbin.UnknownFormat(f"a code object is cut: {error}") from error
    symbols = [] if names is None else bytes(code[names.offset : names.offset + names.size]).split(b"\0")
    for name in symbols:
        if name.endswith(_DESCRIPTOR):
            yield name.removesuffix(_DESCRIPTOR).decode(errors="replace")


#: By the section that holds them: how containers of device code are read, and what one is in which there is nothing.
_READERS = {
    fatbin.SECTION: (fatbin.containers, fatbin.emptied),
    offload_bundle.SECTION: (_bundles, offload_bundle.emptied),
}


def _failing(content: mmap.mmap, sections: Mapping[str, elf.Section]) -> Iterator[tuple[int, bytes | memoryview]]:
    """Yield what is left of a library whose functions do nothing but return an error, or of an archive of such."""
    if content[: len(_EMPTY_ARCHIVE)] == _EMPTY_ARCHIVE:
        yield 0, _EMPTY_ARCHIVE
        return
    whole = memoryview(content)
    yield 0, whole[: elf.segments_end(content)]
    for name, section in sections.items():
        if section.in_file and _LOADED.fullmatch(name):
            yield section.offset, whole[section.offset : section.offset + section.size]
    if ".text" not in sections:
        raise fatbin.UnknownFormat("there is no section `.text`")
    zeros = sections.get(".rodata", sections[".text"]).address
    for name in (".text", ".init", ".fini"):  # the last two are functions that call others at any place
        if name in sections:
            yield sections[name].offset, _returning(sections[name], zeros)


def _returning(code: elf.Section, zeros: int) -> bytes:
    """Return machine code that returns at every place where a function can begin.

    The result is the address of zeros in the file's memory: as a status it is an error that nobody knows, as a text it
    is empty.
    """
    count = -(-code.size // _SLOT)  # what stands behind the section is padding, or written later
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
