"""Make the candidate's own `load_inline` and `load` calls quick: all of torch's steps, with another way to compile.

torch writes build.ninja and runs it. Here a first attempt runs it with `compiler_wrapper.py` before each command of a
compiler, which uses what the harness has compiled beforehand, or runs nvcc's steps side by side. A command that fails
so runs as it is, and what that says, the script left out, is the message that a model sees. Where the attempt fails
otherwise it is forgotten, and torch's own way is gone.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hkbench.fastbuild.inside import compiler_wrapper, gxx as compile_command

PCHS = "HKBENCH_PCHS"  #: names the folder of g++'s precompiled headers; without it builds are as torch makes them
HIP_PCHS = "HKBENCH_HIP_PCHS"  #: likewise of hipcc's
PCH_REQUESTS, HIP_PCH_REQUESTS = "pch_requests", "hip_pch_requests"  #: in the private folder: PCHs that were not there
_OBJECTS = ("*.o", f"*{compile_command.MARK}", f"*{compiler_wrapper.REFUSED}", ".ninja_log", ".ninja_deps")
_FAILED = re.compile(r"^FAILED: ", re.MULTILINE)


def enable_fast_builds_if_offered(cpp_extension: Any) -> None:
    """Do so where the environment of this process names a store of PCHs."""
    if PCHS in os.environ or HIP_PCHS in os.environ:
        enable_fast_builds(
            cpp_extension, *(Path(os.environ[name]) if name in os.environ else None for name in (PCHS, HIP_PCHS))
        )


def enable_fast_builds(cpp_extension: Any, store: Path | None, hip_store: Path | None = None) -> None:
    """Replace the function that runs ninja by one that tries the PCHs of these stores first."""
    stock: Callable[..., None] = cpp_extension._run_ninja_build

    def run(build_directory: str, verbose: bool, error_prefix: str) -> None:
        folder = Path(build_directory)
        if not _attempt(stock, folder, verbose, error_prefix, _launchers(folder, store, hip_store)):
            stock(build_directory, verbose, error_prefix)

    cpp_extension._run_ninja_build = run


def _launchers(folder: Path, store: Path | None, hip_store: Path | None) -> dict[str, str]:
    """Return what to put before the compiler that each variable of build.ninja names."""
    private = Path(os.environ["TMPDIR"]).parent if "TMPDIR" in os.environ else folder
    ways = {"nvcc": ["nvcc"]}
    if store is not None:
        ways["cxx"] = ["compile", str(store), str(private / PCH_REQUESTS)]
    if hip_store is not None:  # torch's own name for hipcc, too
        ways["nvcc"] = ["hipcc", str(hip_store), str(private / HIP_PCH_REQUESTS)]
    return {
        name: shlex.join([sys.executable, "-I", "-S", compiler_wrapper.__file__, *way]) for name, way in ways.items()
    }


def _attempt(
    stock: Callable[..., None], folder: Path, verbose: bool, error_prefix: str, launchers: Mapping[str, str]
) -> bool:
    """Return whether the build came to its end with PCHs; if not, nothing of the attempt is left in `folder`.

    Raises RuntimeError: the build fails in whichever way.
    """
    rules = folder / "build.ninja"
    usual = rules.read_text(encoding="utf-8")
    quick = usual
    for name, words in launchers.items():
        quick = _launched_by(words, name, quick)
    rules.write_text(quick, encoding="utf-8")
    try:
        stock(str(folder), False, error_prefix)
    except (RuntimeError, OSError) as error:
        said = str(error)
        for words in launchers.values():
            said = said.replace(f"{words} ", "")
        refused = len(list(folder.glob(f"*{compiler_wrapper.REFUSED}")))
        for pattern in _OBJECTS:
            for path in folder.glob(pattern):
                path.unlink()
        if 0 < refused == len(_FAILED.findall(said)):
            if verbose:  # torch then prints what ninja says
                os.write(1, said.removeprefix(f"{error_prefix}: ").encode())
                said = error_prefix
            raise RuntimeError(said) from error.__cause__
        return False
    finally:
        rules.write_text(usual, encoding="utf-8")
    return True


def _launched_by(launcher: str, variable: str, rules: str) -> str:
    """Return the rules with `launcher` before the compiler that a variable of theirs names."""
    words = launcher.replace("$", "$$")
    return re.sub(rf"^{variable} = ", lambda found: f"{found[0]}{words} ", rules, count=1, flags=re.MULTILINE)
