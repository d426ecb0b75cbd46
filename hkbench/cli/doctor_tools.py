"""What hkbench doctor says of programs, HipKittens, hip-python and profilers, and what to do where one is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from hkbench.errors import HkbenchError, ToolchainUnavailable
from hkbench.profile.choose import PACKAGES, Profiler, Standing, choose, standings
from hkbench.records import DeviceFacts, DeviceKind
from hkbench.rocm import rocm_version
from hkbench.sandbox.environment import runner_path
from hkbench.toolchain.hip import ARCHITECTURES
from hkbench.toolchain.hipkittens import find_checkout
from hkbench.toolchain.triton import find_triton

#: Programs, with the arguments that make them tell their version.
COMPILERS = {"g++": "--version", "nvcc": "--version", "hipcc": "--version", "ninja": "--version"}
#: Where a missing program comes from, and what does without it.
ADVICE = {
    "g++": "backend cpp and every extension need it; Debian and Ubuntu: apt-get install g++",
    "nvcc": "only backend cuda needs it; it is part of the CUDA toolkit",
    "hipcc": "on PATH; the line hip says what builds HIP candidates",
    "ninja": "`make setup` installs it",
}
#: Where NVIDIA's driver says who may read counters.
NVIDIA_PARAMETERS = Path("/proc/driver/nvidia/params")
VERSION_SECONDS = 20.0


def program(role: str, name: str, flag: str) -> str:
    found = shutil.which(name, path=runner_path())
    if found is None:
        return f"{role:<10} {name}: not found" + (f" ({ADVICE[name]})" if name in ADVICE else "")
    return f"{role:<10} {name}: {_version(found, flag)} ({found})"


def _version(program: str, flag: str) -> str:
    """The line that holds a version, as the program prints it."""
    try:
        done = subprocess.run(
            [program, flag], capture_output=True, text=True, errors="replace", check=False, timeout=VERSION_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run: {error}"
    lines = [line.strip() for line in done.stdout.splitlines() if any(letter.isdigit() for letter in line)]
    named = [line for line in lines if "release" in line or "ersion" in line]
    return (named or lines or [f"does not say its version (exit code {done.returncode})"])[0]


def hipkittens() -> str:
    """Whether a variable names a checkout of HipKittens, of which commit, and which dialects it serves."""
    try:
        found = find_checkout()
    except HkbenchError as error:
        return f"hipkittens {error}"
    return f"hipkittens {found.describe()}{', with changes in include/' if found.changed else ''}"


def triton() -> str:
    """Whether Triton is here with what compiles for AMD GPUs, without importing it."""
    try:
        found = find_triton()
    except ToolchainUnavailable as error:
        return f"triton     {error}"
    return f"triton     {found.version}, with its AMD back end: compiles for {', '.join(ARCHITECTURES)} ({found.root})"


def hip_python() -> str:
    """Whether hip-python is of the line of this machine's ROCm: each release of it belongs to one of ROCm."""
    rocm = rocm_version(os.environ)
    try:
        version = metadata.version("hip-python")
    except metadata.PackageNotFoundError:
        if rocm is None:
            return "hip-python not installed, and no ROCm to ask: only an AMD GPU needs it"
        return f"hip-python not installed: `make setup` installs the line of ROCm {rocm}; torch and rocminfo do without"
    if rocm is None:
        return f"hip-python {version}; no ROCm was found that it could belong to"
    if _line(version) == _line(rocm):
        return f"hip-python {version}, of the line of ROCm {rocm}"
    return f"hip-python {version} is not of the line of ROCm {rocm}: pip install 'hip-python=={_line(rocm)}.*'"


def _line(version: str) -> str:
    return ".".join(version.split(".")[:2])


def profilers(devices: Sequence[DeviceFacts]) -> Iterator[str]:
    """Each maker's profiler, found or not, and which one is used on each GPU."""
    for kind in (DeviceKind.ROCM, DeviceKind.CUDA):
        archs = {facts.arch for facts in devices if facts.kind is kind}
        for one in standings(kind, next(iter(archs)) if len(archs) == 1 else None):
            yield _profiler(one)
    for facts in devices:
        if facts.kind is not DeviceKind.CPU:
            choice = choose(facts.kind, facts.arch)
            yield f"  used     {facts.kind} {facts.index}: {choice.profiler}"
    if not any(facts.kind is not DeviceKind.CPU for facts in devices):
        yield f"  used     {Profiler.TORCH}: no GPU was looked for, or none can be used"


def _profiler(one: Standing) -> str:
    name = one.profiler.value
    if one.program is None:
        return f"profiler   {name}: not found ({PACKAGES[one.profiler]}; torch's profiler does without)"
    line = f"profiler   {name}: {_version(one.program, '--version')} ({one.program})"
    if one.obstacle is not None:
        return f"{line}; not used: {one.obstacle}"
    if one.profiler is Profiler.NCU and _counters_are_for_administrators():
        return (
            f"{line}; counters are for administrators here: set the driver's option "
            "NVreg_RestrictProfilingToAdminUsers=0, or torch's profiler is used"
        )
    return line


def _counters_are_for_administrators() -> bool:
    try:
        return "RmProfilingAdminOnly: 1" in NVIDIA_PARAMETERS.read_text()
    except OSError:
        return False
