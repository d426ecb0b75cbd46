"""Find HipKittens, tell which of its dialects the tree has, and how a kernel is compiled with it.

The tree is a checkout that the environment names, else the headers of the package hk-dsl, which
scripts/install_hipkittens.py puts into `.hipkittens`.

Three layouts are known. Up to May 2026 a checkout has one dialect: the files lie straight in `include/`, and branch
`main` is CDNA4 only, branch `cdna3` CDNA3 only. From June 2026 `include/kittens.cuh` chooses a folder by a macro:
`-DKITTENS_CDNA4` takes `include/cdna4`, and from July 2026 `-DKITTENS_CDNA3` takes `include/cdna3`. The package hk-dsl
has CDNA5, RDNA3 and RDNA4 as well.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hipkittens_build.headers import CHECKOUTS, STAMP, checkout_root, content
from hipkittens_build.source import MACROS, compile_flags
from hkbench.errors import InputMissing, ToolchainUnavailable
from hkbench.toolchain.diagnostics import first_error
from hkbench.toolchain.extension import ExtensionCall
from hkbench.toolchain.hip import HipToolchain
from hkbench.toolchain.process import run_tool

VARIABLES = CHECKOUTS  #: name a checkout; the first that is set counts
GIT_SECONDS = 20.0
PROBE_SECONDS = 120.0  #: for the headers alone, which take about one
_MACRO = re.compile(r"(?:-D|\b)KITTENS_([CR]DNA\d)\b")
_DEFINED = re.compile(r"(?:-D|#\s*define\s+)KITTENS_([CR]DNA\d)\b")


class Dialect(StrEnum):
    """Code for one does not compile for the other."""

    CDNA3 = "cdna3"  #: gfx942: MI300X, MI325X
    CDNA4 = "cdna4"  #: gfx950: MI350X, MI355X
    CDNA5 = "cdna5"  #: gfx1250
    RDNA3 = "rdna3"  #: gfx1100: Radeon RX 7900, W7900; gfx1101, gfx1102
    RDNA4 = "rdna4"  #: gfx1201: Radeon RX 9070, R9700; gfx1200

    @property
    def macro(self) -> str:
        return f"KITTENS_{self.upper()}"

    @property
    def archs(self) -> tuple[str, ...]:
        """The architectures that it is for; the first is the one that its headers were written for."""
        return tuple(arch for arch, macro in MACROS.items() if macro == self.macro)

    @property
    def arch(self) -> str:
        return self.archs[0]


#: Those with a card and examples in the prompts. Candidates of the others can be compiled, not asked for.
WITH_CARD = (Dialect.CDNA3, Dialect.CDNA4)

#: What a checkout has to be for each dialect, for messages.
_WANTED = {
    Dialect.CDNA3: "branch cdna3, or of main from July 2026 on (it has include/cdna3)",
    Dialect.CDNA4: "branch main",
}
_ELSE_WANTED = "with that folder in include/"


def dialect_for(arch: str) -> Dialect:
    """Return the dialect of an architecture that hkbench builds for ("gfx942:sramecc+" counts as "gfx942").

    Raises ToolchainUnavailable for an architecture without one.
    """
    for dialect in Dialect:
        if arch.partition(":")[0] in dialect.archs:
            return dialect
    known = ", ".join(f"{dialect} ({', '.join(dialect.archs)})" for dialect in Dialect)
    raise ToolchainUnavailable(f"HipKittens has no dialect for {arch}, only for {known}: build with backend hip")


@dataclass(frozen=True)
class Checkout:
    """One tree of HipKittens: a git checkout, an exported one, or the headers of a package."""

    root: Path
    variable: str | None  #: the environment variable that named it; None for the installed headers
    dialects: tuple[Dialect, ...]  #: that it can serve
    chooses: bool  #: `kittens.cuh` chooses the dialect's folder by macro
    commit: str | None  #: None for a tree that is no git checkout
    package: str | None  #: "hk-dsl 0.8.0" for the headers of a package
    changed: bool  #: `include/` differs from the commit, or from what the package holds
    content: str  #: sha256 over the names and bytes of all files in `include/`

    @property
    def include(self) -> Path:
        return self.root / "include"

    def describe(self) -> str:
        """Return which tree this is, for a message."""
        served = " and ".join(f"{dialect} ({dialect.arch})" for dialect in self.dialects)
        source = self.package or f"commit {self.commit or 'unknown'}"
        return f"{f'{self.variable}=' if self.variable else ''}{self.root} ({source}) has {served}"

    def versions(self, dialect: Dialect) -> dict[str, str]:
        """Return what a verdict says of the tree: dialect and commit or package, and what `include/` really held."""
        source = self.package or self.commit or "unknown"
        return {
            "hipkittens": f"{dialect}@{source}{' with changes' if self.changed else ''}",
            "hipkittens_include": f"sha256:{self.content}",
        }

    def environment(self, toolchain: HipToolchain) -> dict[str, str]:
        """Return what a candidate finds in its environment: it writes its own compiler flags from these."""
        root = str(self.root)
        return {"HIPKITTENS_ROOT": root, "THUNDERKITTENS_ROOT": root, "ROCM_PATH": str(toolchain.root)}

    @contextmanager
    def offered(self, toolchain: HipToolchain) -> Iterator[None]:
        """Set what `environment` says for this process; runners that start within inherit it."""
        added = self.environment(toolchain)
        before = {name: os.environ.get(name) for name in added}
        os.environ.update(added)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    def compile_flags(self, dialect: Dialect, toolchain: HipToolchain) -> tuple[str, ...]:
        """Return flags for a source without PyTorch's headers, after those of `HipToolchain.compile_command`.

        They are those with which `hipkittens_build` compiles.
        """
        return tuple(compile_flags(dialect.macro, self.include, toolchain.include))

    def require_dialect(self, dialect: Dialect) -> None:
        """Raise ToolchainUnavailable unless the tree has the dialect."""
        if dialect not in self.dialects:
            raise ToolchainUnavailable(
                f"{self.describe()}, and {dialect.arch} needs {dialect}: set HIPKITTENS_ROOT to a checkout of "
                f"HipKittens' {_WANTED.get(dialect, _ELSE_WANTED)}, or unset it and run scripts/install_hipkittens.py"
            )

    def require(self, dialect: Dialect, toolchain: HipToolchain, folder: Path) -> None:
        """Raise ToolchainUnavailable unless a file that only includes `kittens.cuh` compiles for `dialect`.

        What fails here is this machine's fault and no candidate's. `folder` (made) is for the file.
        """
        self.require_dialect(dialect)
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / "includes_kittens.hip"
        source.write_text('#include "kittens.cuh"\n', encoding="utf-8")
        flags = (*self.compile_flags(dialect, toolchain), "--cuda-device-only", "-fsyntax-only")
        command = toolchain.compile_command(source, folder / "nothing.o", dialect.arch, flags, remarks=False)
        done = run_tool(command, folder, PROBE_SECONDS)
        if done.returncode != 0:
            error = (first_error(done.output) or done.output.strip() or "the compiler did not end").splitlines()
            what = next((line for line in error if "error: " in line), error[0])
            raise ToolchainUnavailable(
                f"{self.describe()}, but its headers do not compile with HIP {toolchain.version} of {toolchain.root}: "
                f"{what}. From June 2026 on HipKittens wants ROCm 7.0 or later (set ROCM_PATH); with an older one set "
                "HIPKITTENS_ROOT to an older checkout"
            )


def find_checkout() -> Checkout:
    """Find the tree: $HIPKITTENS_ROOT, else $THUNDERKITTENS_ROOT, else the one of scripts/install_hipkittens.py.

    Raises:
        InputMissing: the folder is not there.
        ToolchainUnavailable: there is none of them, or the folder is no HipKittens.
    """
    found = checkout_root()
    if found is None:
        raise ToolchainUnavailable(
            "there is no HipKittens here: run scripts/install_hipkittens.py (headers of the package hk-dsl, 12 MB), "
            "or set HIPKITTENS_ROOT to a checkout, the folder that holds include/kittens.cuh"
        )
    variable, root = found
    return read_checkout(root, variable)


def read_checkout(root: Path, variable: str | None = VARIABLES[0]) -> Checkout:
    """Look at one tree; errors as for `find_checkout`."""
    root = root.expanduser().absolute()
    where = f"{variable}={root}" if variable else str(root)
    if not root.is_dir():
        raise InputMissing(f"{where}: there is no such folder; set it to a checkout of HipKittens")
    master = root / "include" / "kittens.cuh"
    if not master.is_file():
        remedy = f"set {variable} to the folder of a HipKittens checkout" if variable else "delete it and install again"
        raise ToolchainUnavailable(f"{where}: it has no include/kittens.cuh; {remedy}")
    chosen = _chosen_by_macro(root / "include", _read(master))
    dialects = chosen or _dialect_of_flat(root / "include")
    if not dialects:
        raise ToolchainUnavailable(
            f"{where}: this kittens.cuh is not HipKittens' (ThunderKittens for CUDA has one of the same "
            "name); set HIPKITTENS_ROOT to a checkout of HipKittens"
        )
    held = content(root / "include")
    package, changed = _package(root, held)
    commit = None
    if package is None:
        commit, changed = _commit(root)
    return Checkout(root, variable, dialects, bool(chosen), commit, package, changed, held)


def doubts(call: ExtensionCall, dialect: Dialect) -> tuple[str, ...]:
    """Return what compiles here, or nearly so, in a captured build, and is wrong for `dialect` or under PyTorch."""
    found: list[str] = []
    text = "\n".join((*call.extra_cuda_cflags, *call.extra_cflags, *call.cuda_sources, *call.cpp_sources))
    named = {match.lower() for match in _DEFINED.findall(text)}
    if named and dialect not in named:
        found.append(f"{call.name}: written for {', '.join(sorted(named))}, compiled for {dialect} ({dialect.arch})")
    elif not named and call.bound is None and "kittens.cuh" in text:
        found.append(f"{call.name}: the build does not define {dialect.macro}, so kittens.cuh cannot know the GPU")
    if any((Path(folder) / "kittens.cuh").is_file() for folder in call.extra_include_paths):
        found.append(
            f"{call.name}: HipKittens' folder stands in extra_include_paths, where PyTorch's hipify rewrites the "
            "headers; it belongs into extra_cuda_cflags as -I"
        )
    return tuple(found)


def wrong_results(dialect: Dialect, compiler: str) -> tuple[str, ...]:
    """Return what a compiler gets wrong in HipKittens without a message. `compiler`: `HipToolchain.compiler`.

    Source: the package hk-dsl 0.8.0 (hk/ops/hipkittens.py), measured on an MI355X.
    """
    if dialect is Dialect.CDNA4 and _clang(compiler) == 20:
        return (
            "built by clang 20 (ROCm 7.1): with it HipKittens' bf16 GEMM of eight waves is known to compile without a "
            "message and to be wrong in a quarter of its rows; ROCm 7.2.3 built it right",
        )
    return ()


def refusals(dialect: Dialect, compiler: str) -> tuple[str, ...]:
    """Return what of HipKittens a compiler is known to refuse. Source as for `wrong_results`."""
    if dialect is Dialect.CDNA4 and _clang(compiler) == 22:
        return (
            "HipKittens' own attention kernels (pinned registers, art) do not compile with ROCm 7.2's clang 22: it "
            "finds zero, copy and mul ambiguous",
        )
    return ()


def _clang(compiler: str) -> int | None:
    found = re.search(r"clang version (\d+)", compiler)
    return int(found[1]) if found else None


def _chosen_by_macro(include: Path, master: str) -> tuple[Dialect, ...]:
    """Return dialects that the master header offers by macro and whose folder is there."""
    named = {match.lower() for match in _MACRO.findall(master)}
    return tuple(dialect for dialect in Dialect if dialect in named and (include / dialect).is_dir())


def _dialect_of_flat(include: Path) -> tuple[Dialect, ...]:
    """Return an older tree's dialect: only CDNA4's register tiles have a shape, only CDNA3 asks for its macro."""
    if (include / "types" / "register" / "rt_shape.cuh").is_file():
        return (Dialect.CDNA4,)
    util = include / "common" / "util.cuh"
    return (Dialect.CDNA3,) if util.is_file() and Dialect.CDNA3.macro in _read(util) else ()


def _package(root: Path, held: str) -> tuple[str | None, bool]:
    """Return (name and version of the headers' package, whether `include/` holds something else)."""
    stamp = root / STAMP
    if not stamp.is_file():
        return None, False
    package, _, written = _read(stamp).partition("\n")
    return package, written.strip() != f"sha256:{held}"


def _commit(root: Path) -> tuple[str | None, bool]:
    """Return (commit, whether include/ differs from it); (None, False) where `root` is no git work tree's top."""
    shown = _git(root, "rev-parse", "--show-toplevel", "HEAD")
    if shown is None:
        return None, False
    top, _, commit = shown.strip().partition("\n")
    if Path(top).resolve() != root.resolve() or not re.fullmatch(r"[0-9a-f]{40,64}", commit):
        return None, False  # an exported tree that lies in somebody else's repository
    return commit, bool(_git(root, "status", "--porcelain", "--", "include"))


def _git(root: Path, *arguments: str) -> str | None:
    """Return what git prints; None where it is not installed or does not answer for this folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # A repository's own settings may name a program that watches its files.
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_SECONDS, env=environment, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
