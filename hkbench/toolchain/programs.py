"""Find the programs and packages that build candidates, where a candidate's own build looks for them."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from hkbench.errors import ToolchainUnavailable
from hkbench.sandbox.environment import runner_path
from hkbench.shipped import installing
from hkbench.toolchain.hip import find_torch

_PROBE_SECONDS = 20.0


def find_cxx() -> str:
    """Find the C++ compiler that PyTorch calls for an extension: $CXX, else c++.

    Raises:
        ToolchainUnavailable: there is none; with where it comes from.
    """
    named = os.environ.get("CXX", "").strip() or "c++"
    program = find_program(shlex.split(named)[0])
    if program is None:
        raise ToolchainUnavailable(
            f"there is no C++ compiler here ({named} is not found), and extensions are built with it: install g++ "
            "(Debian and Ubuntu: apt-get install g++)"
        )
    return program


def check_cxx() -> None:
    """Have the C++ compiler read one line: a driver may be there without the compiler proper (cc1plus).

    Raises:
        ToolchainUnavailable: it does not.
    """
    program = find_cxx()
    command = [program, "-x", "c++", "-fsyntax-only", "-"]
    try:
        done = subprocess.run(
            command, input="int x;\n", capture_output=True, text=True, check=False, timeout=_PROBE_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainUnavailable(f"{program} does not run ({error}): install g++ anew") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise ToolchainUnavailable(
            f"{program} compiles nothing ({said[0] if said else 'no message'}): install g++ anew"
        )


def find_extension_tools() -> None:
    """Find what builds an extension of PyTorch: the C++ compiler and ninja. Raises ToolchainUnavailable."""
    find_cxx()
    if find_program("ninja") is None:
        raise ToolchainUnavailable(
            f"there is no ninja here, and PyTorch builds extensions with it: run `{installing('ninja')}`, or install it"
        )


def require_nvcc() -> None:
    """Raise ToolchainUnavailable where there is no nvcc."""
    if find_nvcc() is None:
        raise ToolchainUnavailable(
            "there is no nvcc here, and backend cuda is compiled with it: install the CUDA toolkit, or set CUDA_HOME "
            "to the folder that holds bin/nvcc"
        )


def find_nvcc() -> str | None:
    """Find the nvcc that PyTorch calls: $PYTORCH_NVCC, else that of CUDA_HOME, of PATH, of /usr/local/cuda."""
    if os.environ.get("PYTORCH_NVCC"):
        return find_program(os.environ["PYTORCH_NVCC"])
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home:
        return find_program(str(Path(home, "bin", "nvcc")))
    return find_program("nvcc") or find_program("/usr/local/cuda/bin/nvcc")


def find_cuobjdump() -> str:
    """Find the disassembler of CUDA, beside nvcc or on PATH. Raises ToolchainUnavailable."""
    nvcc = find_nvcc()
    beside = find_program(str(Path(nvcc).resolve().with_name("cuobjdump"))) if nvcc is not None else None
    program = beside or find_program("cuobjdump")
    if program is None:
        raise ToolchainUnavailable("there is no cuobjdump here (the CUDA toolkit has it)")
    return program


def require_triton() -> None:
    """Raise ToolchainUnavailable where Triton, or the C compiler that builds its launchers, is missing."""
    if importlib.util.find_spec("triton") is None:
        raise ToolchainUnavailable(
            "Triton is not installed, and backend triton needs it: run `pip install triton` with this interpreter's pip"
        )
    named = os.environ.get("CC", "").strip()
    if not any(find_program(name) for name in ([shlex.split(named)[0]] if named else ["gcc", "clang", "cc"])):
        raise ToolchainUnavailable(
            "there is no C compiler here, and Triton builds its launchers with one: install gcc "
            "(Debian and Ubuntu: apt-get install gcc)"
        )


def surely_cpu() -> bool:
    """Tell whether `--device auto` can only be the CPU: this PyTorch was built without CUDA and without ROCm.

    The package's own text says so; torch is not imported. Raises ToolchainUnavailable where it is not installed.
    """
    text = (find_torch().root / "version.py").read_text(encoding="utf-8")
    return all(re.search(rf"^{name}\b.*= None\s*$", text, re.MULTILINE) for name in ("cuda", "hip"))


def find_program(name: str) -> str | None:
    """Find a program where a runner looks for it."""
    return shutil.which(name, path=runner_path())
