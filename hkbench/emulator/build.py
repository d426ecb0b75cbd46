"""Build the executor, once for each state of its sources, compiler and processor, in the user's cache folder."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hkbench.errors import ToolchainUnavailable
from hkbench.shipped import cache_folder

CORE = Path(__file__).parent / "core"
#: No contraction: a multiplication and an addition are two roundings. Bits are read as the type at hand.
FLAGS = (
    "-std=c++20",
    "-O3",
    "-march=native",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-strict-aliasing",
    "-fPIC",
    "-pthread",
)
BUILD_SECONDS = 600.0
_CPU = re.compile(r"^(?:flags|Features|model name)\s*:.*$", re.M)


@functools.cache
def core() -> ctypes.CDLL:
    """Return the executor, built if it is not there yet (some 20 s).

    Raises ToolchainUnavailable when there is no C++ compiler, or it refuses the sources.
    """
    return ctypes.CDLL(str(library()))


def library() -> Path:
    """Return the shared library's path; build it first if need be. Raises ToolchainUnavailable."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise ToolchainUnavailable("the emulated device is built by g++ 12 or newer, and there is none: install g++")
    sources = sorted(CORE.glob("*.cpp"))
    folder = cache_folder() / "emulator" / _digest(compiler, [*sources, *sorted(CORE.glob("*.h"))])
    built = folder / "core.so"
    if built.is_file():
        return built
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as made:
        objects = [Path(made) / f"{source.stem}.o" for source in sources]
        commands = [
            [compiler, *FLAGS, "-c", str(source), "-o", str(to)] for source, to in zip(sources, objects, strict=True)
        ]
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(_run, commands))
        linked = Path(made) / "core.so"
        _run([compiler, "-shared", "-pthread", *map(str, objects), "-o", str(linked)])
        linked.replace(built)  # at once: another process may be at it, too
    return built


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
    )
    if done.returncode != 0:
        said = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:200])
        raise ToolchainUnavailable(f"the emulated device was not built: {said.strip()} (g++ 12 or newer is needed)")


def _digest(compiler: str, files: list[Path]) -> str:
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    try:
        cpu = "\n".join(sorted(set(_CPU.findall(Path("/proc/cpuinfo").read_text(encoding="utf-8")))))
    except OSError:
        cpu = ""
    found = hashlib.sha256("\0".join([version, cpu, *FLAGS]).encode())
    for file in files:
        found.update(file.name.encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:32]
