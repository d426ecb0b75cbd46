"""Makes the candidate's own `load_inline` and `load` calls quick: all of torch's steps, with another way to compile.

torch writes build.ninja and runs it. Here a first attempt runs it with `compile.py` before each command of the C++
compiler, which uses what the harness has compiled beforehand, and with `nvcc.py` before each of nvcc's. Where that
fails, for whatever reason, the attempt is forgotten and torch's own way is gone: a message that a model sees is always
that of the usual build.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hkbench.runner import compile as compile_command
from hkbench.runner import nvcc

KITS = "HKBENCH_KITS"  #: names the folder of precompiled headers; without it builds are as torch makes them
WISHES = "wishes"  #: in the private folder: kits that were not there
_OBJECTS = ("*.o", f"*{compile_command.MARK}", ".ninja_log", ".ninja_deps")


def quicken_if_offered(cpp_extension: Any) -> None:
    """Does so where the environment of this process names a store of kits."""
    if KITS in os.environ:
        quicken(cpp_extension, Path(os.environ[KITS]))


def quicken(cpp_extension: Any, store: Path) -> None:
    """Replaces the function that runs ninja by one that tries the kits of `store` first."""
    stock: Callable[..., None] = cpp_extension._run_ninja_build

    def run(build_directory: str, verbose: bool, error_prefix: str) -> None:
        if not _attempt(stock, Path(build_directory), error_prefix, store):
            stock(build_directory, verbose, error_prefix)

    cpp_extension._run_ninja_build = run


def _attempt(stock: Callable[..., None], folder: Path, error_prefix: str, store: Path) -> bool:
    """Whether the build came to its end with kits; if not, nothing of the attempt is left in `folder`."""
    rules = folder / "build.ninja"
    usual = rules.read_text(encoding="utf-8")
    wishes = Path(os.environ["TMPDIR"]).with_name(WISHES) if "TMPDIR" in os.environ else folder / WISHES
    launchers = {"cxx": [compile_command.__file__, str(store), str(wishes)], "nvcc": [nvcc.__file__]}
    quick = usual
    for name, script in launchers.items():
        quick = _launched_by([sys.executable, "-I", "-S", *script], name, quick)
    rules.write_text(quick, encoding="utf-8")
    try:
        stock(str(folder), False, error_prefix)
    except (RuntimeError, OSError):
        for pattern in _OBJECTS:
            for path in folder.glob(pattern):
                path.unlink()
        return False
    finally:
        rules.write_text(usual, encoding="utf-8")
    return True


def _launched_by(launcher: Sequence[str], variable: str, rules: str) -> str:
    """The rules with `launcher` before the compiler that a variable of theirs names."""
    words = shlex.join(launcher).replace("$", "$$")
    return re.sub(rf"^{variable} = ", lambda found: f"{found[0]}{words} ", rules, count=1, flags=re.MULTILINE)
