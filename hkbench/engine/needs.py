"""What candidates of a backend need of the machine: a device of a kind, and tools. Found without starting anything."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from hkbench.errors import ToolchainUnavailable, UsageError
from hkbench.records import Backend, DeviceKind
from hkbench.sandbox.environment import runner_path
from hkbench.toolchain.hip import find_hip, find_torch

_ROCM, _CUDA = DeviceKind.ROCM, DeviceKind.CUDA
#: The devices that a backend is for; C++ is measured wherever the tensors are.
KINDS: dict[Backend, frozenset[DeviceKind]] = {
    Backend.HIPKITTENS: frozenset({_ROCM}),
    Backend.HIP: frozenset({_ROCM}),
    Backend.CUDA: frozenset({_CUDA}),
    Backend.TRITON: frozenset({_ROCM, _CUDA}),
    Backend.CPP: frozenset(DeviceKind),
}
_NAMES = {
    frozenset({_ROCM}): "AMD GPUs",
    frozenset({_CUDA}): "NVIDIA GPUs",
    frozenset({_ROCM, _CUDA}): "GPUs",
}
_COMPILED_ALONE = (Backend.HIP, Backend.HIPKITTENS, Backend.TRITON)
_PROBE_SECONDS = 20.0


def check_kind(backend: Backend, kind: DeviceKind, name: str) -> None:
    """Raises UsageError where candidates of `backend` cannot be measured on a device of this kind, called `name`."""
    kinds = KINDS[backend]
    if kind in kinds:
        return
    advice = "; name another backend with --backend, or another device with --device"
    if backend in _COMPILED_ALONE:
        advice = f"; eval.py --build-only --backend {backend} --arch gfx942 compiles a candidate without one"
    raise UsageError(f"backend {backend} is for {_NAMES[kinds]}, and this device is {name}{advice}")


def check_tools(backend: Backend) -> None:
    """Looks for the programs and packages that build candidates, where a candidate's own build looks for them.

    Raises:
        ToolchainUnavailable: one is missing; with where it comes from.
    """
    if backend is Backend.TRITON:
        _check_triton()
        return
    find_cxx()
    if _found("ninja") is None:
        raise ToolchainUnavailable(
            "there is no ninja here, and PyTorch builds extensions with it: run `make setup`, or install ninja"
        )
    if backend is Backend.CUDA and find_nvcc() is None:
        raise ToolchainUnavailable(
            "there is no nvcc here, and backend cuda is compiled with it: install the CUDA toolkit, or set CUDA_HOME "
            "to the folder that holds bin/nvcc"
        )
    if backend in (Backend.HIP, Backend.HIPKITTENS):
        find_hip()


def check_compiler() -> None:
    """Has the C++ compiler read one line: a driver may be there without the compiler proper (cc1plus).

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


def find_cxx() -> str:
    """The C++ compiler that PyTorch calls for an extension: $CXX, else c++. Raises ToolchainUnavailable."""
    named = os.environ.get("CXX", "").strip() or "c++"
    program = _found(shlex.split(named)[0])
    if program is None:
        raise ToolchainUnavailable(
            f"there is no C++ compiler here ({named} is not found), and extensions are built with it: install g++ "
            "(Debian and Ubuntu: apt-get install g++)"
        )
    return program


def find_nvcc() -> str | None:
    """The nvcc that PyTorch calls: $PYTORCH_NVCC, else that of CUDA_HOME, of PATH, of /usr/local/cuda."""
    if os.environ.get("PYTORCH_NVCC"):
        return _found(os.environ["PYTORCH_NVCC"])
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home:
        return _found(str(Path(home, "bin", "nvcc")))
    return _found("nvcc") or _found("/usr/local/cuda/bin/nvcc")


def surely_cpu() -> bool:
    """Whether `--device auto` can only be the CPU: this PyTorch was built without CUDA and without ROCm.

    From the package's own text: torch is not imported. Raises ToolchainUnavailable where it is not installed.
    """
    text = (find_torch().root / "version.py").read_text(encoding="utf-8")
    return all(re.search(rf"^{name}\b.*= None\s*$", text, re.MULTILINE) for name in ("cuda", "hip"))


def _check_triton() -> None:
    if importlib.util.find_spec("triton") is None:
        raise ToolchainUnavailable(
            "Triton is not installed, and backend triton needs it: run `pip install triton` with this interpreter's pip"
        )
    named = os.environ.get("CC", "").strip()
    if not any(_found(name) for name in ([shlex.split(named)[0]] if named else ["gcc", "clang", "cc"])):
        raise ToolchainUnavailable(
            "there is no C compiler here, and Triton builds its launchers with one: install gcc "
            "(Debian and Ubuntu: apt-get install gcc)"
        )


def _found(program: str) -> str | None:
    return shutil.which(program, path=runner_path())
