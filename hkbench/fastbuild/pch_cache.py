"""Make the precompiled headers that candidates' builds share: the trusted side of `fastbuild/inside/gxx.py`.

A PCH is made once per toolchain, PyTorch, processor and set of flags, from files that no candidate can write, and lies
in the user's cache folder, where runners can read it and not write. What a candidate chooses of it is a name from a
list and flags from a list.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hkbench.errors import ToolchainUnavailable
from hkbench.fastbuild.inside import gxx as use
from hkbench.fastbuild.inside.patch_torch import PCH_REQUESTS, PCHS
from hkbench.rocm import include_folders
from hkbench.shipped import cache_folder
from hkbench.toolchain.hip import TorchFiles, find_torch
from hkbench.toolchain.process import run_tool

MAKE_SECONDS = 300.0
MAX_PCHS = 12  #: of one toolchain; each takes some 0.5 GB, and the one that was used least recently goes first
MAX_REQUESTS = 2  #: of one candidate
MAX_NAMES = 64  #: that are looked at in the folder of its requests
MAX_FOLDERS = 32
UNUSED_DAYS = 30  #: after which the store of a toolchain goes: an upgrade leaves gigabytes behind
_REQUEST_BYTES = 4096
_REQUEST = re.compile(r"[0-9a-f]{32}\.json")

_TEXTS = {
    "extension": ("torch/extension.h",),
    "torch": ("torch/types.h", "torch/csrc/utils/pybind.h", "torch/csrc/Exceptions.h"),
    "pybind11": ("pybind11/pybind11.h",),
}


class NotMade(Exception):
    """A PCH could not be made; the text is what the compiler said. Builds go on without it."""


@dataclass(frozen=True)
class PchRequest:
    """A PCH that a build could have used."""

    pch: str
    flags: tuple[str, ...]

    @property
    def name(self) -> str:
        return use.digest(self.pch, self.flags)


class PchCache:
    """The PCHs of the present toolchain, in `store`."""

    def __init__(self, root: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
        """Take `environment`: what builds have in theirs that the engine has not.

        Raises:
            ToolchainUnavailable: no GNU C++ compiler, or no PyTorch.
        """
        torch = find_torch()
        self.compiler = _compiler()
        self._folders = [str(path) for path in torch.includes]
        self._steering = use.steering(environment or {})
        self.store = (root or default_root()) / _fingerprint(self.compiler, torch, self._steering)
        self.store.mkdir(parents=True, exist_ok=True)
        forget_unused(self.store.parent)
        described = {
            "compiler": str(self.compiler),
            "folders": self._folders,
            "environment": self._steering,
            "also": _gpu_folders(torch, {**os.environ, **(environment or {})}),
        }
        describe(self.store / use.TOOLCHAIN, described, "also")

    @property
    def environment(self) -> dict[str, str]:
        """What a runner has to know."""
        return {PCHS: str(self.store)}

    @property
    def reads(self) -> tuple[Path, ...]:
        """What has to be in sight where PCHs are made, beyond the system."""
        return tuple(Path(folder) for value in self._steering.values() for folder in value.split(":"))

    def requested(self, folder: Path) -> list[PchRequest]:
        """Return what the builds in a candidate's private folder asked for."""
        return requests(folder / PCH_REQUESTS)

    def has(self, request: PchRequest) -> bool:
        return (self.store / request.name / use.PRECOMPILED).is_file()

    def make(
        self,
        request: PchRequest,
        prefix: Sequence[str] = (),
        folder: Path | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """Make a PCH unless it is there; take some 10 to 60 s.

        `prefix` stands before each compiler: a cage that may write in `folder`, which is one of `new_folder`.
        `stop` ends it early.

        Raises:
            NotMade: the compiler refused, was stopped, or took longer than MAKE_SECONDS.
        """
        folder = folder or self.new_folder()
        try:
            if not self.has(request):
                self._make(request, tuple(prefix), folder, stop)
                shutil.rmtree(folder / "tmp", ignore_errors=True)
                self._drop_oldest()
                if not self.has(request):  # another process may have been quicker
                    folder.rename(self.store / request.name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def new_folder(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="making-", dir=self.store))

    def _make(self, request: PchRequest, prefix: tuple[str, ...], folder: Path, stop: threading.Event | None) -> None:
        deadline = time.monotonic() + MAKE_SECONDS
        include = [f"#include <{name}>" for name in _TEXTS[request.pch]]
        folders = [str(folder / use.INCLUDE), *self._folders]
        steered = [f"{name}={value}" for name, value in self._steering.items()]
        before = (*prefix, "env", *steered) if steered else prefix
        common = [*request.flags, *(word for path in folders for word in ("-isystem", path))]

        def run(*words: str) -> str:
            result = run_tool([str(self.compiler), *words], folder, deadline - time.monotonic(), stop, before)
            if result.returncode != 0:
                raise NotMade(result.output[-2000:] or f"no end within {MAKE_SECONDS:.0f} s")
            return result.output

        for name, includes in use.HEADER_SUBSTITUTES.get(request.pch, {}).items():
            path = folder / use.INCLUDE / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(use.substitute_header(name, includes), encoding="utf-8")
        (folder / "all.cpp").write_text("\n".join([*include, ""]), encoding="utf-8")
        run(*common, "-M", "-MF", "all.d", "all.cpp")
        inner = f"{self._folders[0]}/pybind11/"
        bindings = [word for word in (folder / "all.d").read_text().split() if word.startswith(inner)]
        (folder / use.HEADER).write_text("\n".join([*_interfaces(bindings), *include, ""]), encoding="utf-8")
        names = dict.fromkeys(Path(path).name for path in bindings)
        support = "".join(f'#pragma implementation "{name}"\n' for name in names)
        (folder / "support.cpp").write_text(f'{support}#include "{use.HEADER}"\n', encoding="utf-8")
        run(*common, "-c", "support.cpp", "-o", use.SUPPORT)
        run(*common, "-x", "c++-header", use.HEADER, "-o", use.PRECOMPILED)

    def _drop_oldest(self) -> None:
        pchs = sorted(
            (path.parent for path in self.store.glob(f"*/{use.PRECOMPILED}")),
            key=lambda pch: (pch / use.PRECOMPILED).stat().st_atime,
        )
        for pch in pchs[: max(0, len(pchs) - MAX_PCHS + 1)]:
            shutil.rmtree(pch, ignore_errors=True)


def _interfaces(headers: Sequence[str]) -> list[str]:
    """Say of each header, under its own name, that its inline functions are compiled elsewhere (#pragma interface).

    They may still be inlined; the out-of-line copies, which each build would compile anew, are those of `SUPPORT`.
    """
    lines = [line for path in headers for line in (f'#line 1 "{path}"', "#pragma interface")]
    return [*lines, f'#line 1 "{use.HEADER}"']


def default_root() -> Path:
    """Return ~/.cache/hkbench/pchs, or the folder below $XDG_CACHE_HOME."""
    return cache_folder() / "pchs"


def forget_unused(stores: Path) -> None:
    """Remove the stores in a folder that no run has begun with for `UNUSED_DAYS`: each run writes TOOLCHAIN anew."""
    oldest = time.time() - UNUSED_DAYS * 86_400
    for described in stores.glob(f"*/{use.TOOLCHAIN}"):
        with contextlib.suppress(OSError):  # another run may do the same
            if described.stat().st_mtime < oldest:
                shutil.rmtree(described.parent, ignore_errors=True)


def requests(folder: Path) -> list[PchRequest]:
    """Return what a candidate's builds asked for.

    Its own process wrote this: names and flags are checked against lists.
    """
    found = []
    for request in written(folder):
        with contextlib.suppress(KeyError, TypeError):
            if use.acceptable(request["pch"], request["flags"]):
                found.append(PchRequest(request["pch"], tuple(request["flags"])))
    return found


def written(folder: Path) -> Iterator[Any]:
    """Yield the JSON of up to MAX_REQUESTS requests in a folder that a candidate may have made into anything."""
    names: list[str] = []
    if folder.is_dir() and not folder.is_symlink():
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            names = [entry.name for entry in itertools.islice(entries, MAX_NAMES)]
    for name in sorted(filter(_REQUEST.fullmatch, names))[:MAX_REQUESTS]:
        try:
            fd = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        with os.fdopen(fd, "rb") as file:
            text = file.read(_REQUEST_BYTES) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
        with contextlib.suppress(ValueError, RecursionError):
            yield json.loads(text)


def _compiler() -> Path:
    """Return the C++ compiler that torch calls. Raises ToolchainUnavailable when it is none of GNU's."""
    program = shutil.which(os.environ.get("CXX", "c++"))
    if program is None:
        raise ToolchainUnavailable("there is no C++ compiler here: install g++")
    compiler = Path(program).resolve()
    if "gcc version" not in _said(compiler, "-v"):
        raise ToolchainUnavailable(f"{compiler} is not GNU's C++ compiler: builds share no precompiled headers")
    return compiler


def _said(compiler: Path, question: str) -> str:
    try:
        shown = subprocess.run(
            [str(compiler), question], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolchainUnavailable(f"{compiler} does not start ({error}): install g++ anew") from error
    return shown.stdout + shown.stderr


def _fingerprint(compiler: Path, torch: TorchFiles, steering: Mapping[str, str]) -> str:
    """Name all that a precompiled header depends on besides flags: a change of any of it makes a new store."""
    parts = [str(compiler), torch.version, str(torch.root), sys.version, json.dumps([_TEXTS, use.HEADER_SUBSTITUTES])]
    parts += [_said(compiler, "-v"), json.dumps(steering)]
    cc1plus = Path(_said(compiler, "-print-prog-name=cc1plus").strip())
    for path in (cc1plus, torch.root / "version.py", torch.includes[0] / "torch" / "extension.h"):
        known = path.stat()
        parts.append(f"{path} {known.st_size} {known.st_mtime_ns}")
    if Path("/proc/cpuinfo").is_file():  # what -march=native means
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        parts += [line for line in lines if line.startswith(("flags", "model name"))][:2]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _gpu_folders(torch: TorchFiles, environment: Mapping[str, str]) -> list[str]:
    """Return where torch may find CUDA's or HIP's headers: passed beside its own, they hold none of the PCHs'."""
    homes = [environment[name] for name in ("CUDA_HOME", "CUDA_PATH") if environment.get(name)] + ["/usr/local/cuda"]
    nvcc = shutil.which("nvcc")
    homes += [str(Path(nvcc).parents[1])] if nvcc else []
    cuda = [str(Path(home) / "include") for home in dict.fromkeys(homes)]
    return [*cuda, str(torch.root / "include" / "THH"), *include_folders(environment)]


def describe(path: Path, described: dict[str, Any], folders: str) -> None:
    """Write a store's description in one step: runs beside this one read it.

    `folders` names a list that depends on a run's environment. What other runs have put there stays, up to MAX_FOLDERS.
    """
    known: list[str] = []
    with contextlib.suppress(OSError, ValueError, KeyError):
        known = json.loads(path.read_text(encoding="utf-8"))[folders]
    listed = list(dict.fromkeys([*described[folders], *known]))[:MAX_FOLDERS]
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(described | {folders: listed}, file)
    Path(name).chmod(0o644)
    Path(name).replace(path)
