"""Stand in build.ninja for a compiler: have its quick way tried, and do what is left.

    python -I -S compiler_wrapper.py compile STORE REQUESTS COMPILER ARGUMENT...
    python -I -S compiler_wrapper.py hipcc STORE REQUESTS COMPILER ARGUMENT...
    python -I -S compiler_wrapper.py nvcc COMPILER ARGUMENT...

The first word names the module of this package that knows the way. Where there is none, and where it fails and that is
not final, the command itself runs. What is refused for good is marked by the file `OUTPUT.refused`: building once more
without this script would come to the same. Standard library only: it starts in some hundredths of a second.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

if __name__ == "__main__":
    # As a script it does not know where hkbench lies, and the cage lets nobody list the folders above this one, as an
    # ordinary import of the package would.
    _place = Path(__file__).resolve().parent
    for _package in ("hkbench.fastbuild.inside", "hkbench.fastbuild", "hkbench"):
        sys.modules[_package] = ModuleType(_package)
        sys.modules[_package].__path__ = [str(_place)]
        _place = _place.parent

from hkbench.fastbuild.inside.attempt import CompileAttempt

REFUSED = ".refused"
#: Of compilers. They go on beside measurements on a GPU, whose evaluators are to have a processor when they want one.
NICENESS = 10


def attempt(way: str, arguments: Sequence[str]) -> tuple[list[str], CompileAttempt | list[str] | None]:
    """Return the command, and what became of its quick way; a list of words is to be run in the command's place."""
    quick = _quick_way(way)
    count = 0 if way == "nvcc" else 2
    folders, command = map(Path, arguments[:count]), list(arguments[count:])
    with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
        return command, quick(*folders, command)
    return command, None


def _quick_way(way: str) -> Callable[..., CompileAttempt | list[str] | None]:
    """Import that module alone: this script starts anew for each command of a build."""
    if way == "nvcc":
        from hkbench.fastbuild.inside import nvcc

        return nvcc.attempt
    if way == "hipcc":
        from hkbench.fastbuild.inside import hipcc

        return hipcc.attempt
    from hkbench.fastbuild.inside import gxx as gcc

    return gcc.attempt


def main(arguments: Sequence[str]) -> int:
    """Return the exit status, that of the command if it would fail."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends what is in process groups of its own, too
    os.nice(NICENESS)
    command, tried = attempt(arguments[0], arguments[1:])
    if isinstance(tried, list):
        os.execvp(tried[0], tried)  # noqa: S606 - no shell: the words are the command
    if tried is not None and (tried.status == 0 or tried.final):
        sys.stdout.write(tried.output)
        status = tried.status
    else:
        status = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    if status != 0 and "-o" in command[:-1]:
        Path(command[command.index("-o") + 1] + REFUSED).touch()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
