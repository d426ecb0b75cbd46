"""hkbench doctor: what this machine can do, and how far candidates are confined on it."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from hkbench.cli.doctor_tools import COMPILERS, VERSION_SECONDS, hip_python, hipkittens, profilers, program, triton
from hkbench.devices.describe import gpu_lines
from hkbench.devices.merge import MergedGpu, alone, merge
from hkbench.devices.reading import SourceReport
from hkbench.devices.sources import ask_hip_python, ask_rocminfo
from hkbench.engine import Evaluator
from hkbench.engine.confinement import survey
from hkbench.errors import HkbenchError, ToolchainUnavailable
from hkbench.records import DeviceFacts, DeviceKind, Isolation, JudgeSettings
from hkbench.sandbox.environment import kept_environment
from hkbench.toolchain.hip import ARCHITECTURES, HipToolchain, find_hip

DESCRIPTION = "Show how far candidates are confined on this machine, and which devices and compilers it has."

KFD = Path("/dev/kfd")  #: there where the kernel's driver has found an AMD GPU
GIB = 1 << 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-devices", action="store_true", help="do not import torch to look for devices (seconds)")


def run(options: argparse.Namespace) -> int:
    """Prints; what is missing is shown, not an error."""
    for line in asyncio.run(_report(not options.no_devices)):
        print(line)
    return 0


async def _report(look_for_devices: bool) -> list[str]:
    isolation = await survey()
    lines = [*_isolation(isolation), "", f"python     {platform.python_version()} ({sys.executable})", _torch()]
    devices: tuple[DeviceFacts, ...] = ()
    if look_for_devices:
        found, devices = await _devices()
        lines += found
    lines += [program("compiler", name, flag) for name, flag in COMPILERS.items()]
    return [*lines, *_hip(), hipkittens(), triton(), hip_python(), *profilers(devices), *_disk()]


def _isolation(isolation: Isolation) -> Iterator[str]:
    yield f"isolation  {isolation.level}"
    yield f"  layers   {', '.join(isolation.layers)}"
    yield f"  holds    {', '.join(isolation.holds)}"
    for line in isolation.missing:
        yield f"  missing  {line}"


def _torch() -> str:
    """From the package's own data: the engine never imports it. Its version names what it was built for (+cu130)."""
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "torch      not installed; `make` installs the build that fits this machine"
    build = version.partition("+")[2] or "not said by its version"
    return f"torch      {version} (built for: {build})"


async def _devices() -> tuple[list[str], tuple[DeviceFacts, ...]]:
    """Lines on every device, and those that torch can use."""
    lines: list[str] = []
    devices: tuple[DeviceFacts, ...] = ()
    try:
        devices = await _torch_devices()
    except HkbenchError as error:
        lines.append(f"device     none can be used: {error}")
    rocm = [facts for facts in devices if facts.kind is DeviceKind.ROCM]
    for facts in devices:
        if facts.kind is DeviceKind.CPU:
            lines.append(f"device     cpu {facts.index}: {facts.name}" + (f", {facts.arch}" if facts.arch else ""))
        elif facts.kind is DeviceKind.CUDA:
            lines += _gpu(alone(facts))
    if rocm or KFD.exists():
        environment = kept_environment()
        reports = await asyncio.gather(
            asyncio.to_thread(ask_hip_python, environment), asyncio.to_thread(ask_rocminfo, environment)
        )
        lines += _amd(rocm, *reports)
    return lines, devices


async def _torch_devices() -> tuple[DeviceFacts, ...]:
    async with Evaluator(None, JudgeSettings()) as evaluator:
        return evaluator.devices


def _amd(rocm: list[DeviceFacts], hip: SourceReport, hsa: SourceReport) -> Iterator[str]:
    """AMD GPUs by all sources; what each source could not say, and why torch cannot use what is there."""
    gpus = merge(rocm, hip, hsa)
    for gpu in gpus:
        yield from _gpu(gpu)
    for report in (hip, hsa):
        if report.error is not None:
            yield f"  missing  {report.source}: {report.error}"
    if hip.gpus and rocm and len(hip.gpus) != len(rocm):
        yield f"  warning  {hip.source} sees {len(hip.gpus)} GPUs, torch {len(rocm)}: are two ROCm installations mixed?"
    if rocm:
        return
    if gpus:
        yield "  warning  torch cannot use an AMD GPU here: it has to be a ROCm build, `TORCH_INDEX=... make setup`"
    if KFD.exists() and not os.access(KFD, os.R_OK | os.W_OK):
        yield (
            f"  warning  {KFD} may not be opened by this user: join its group (render, video), or start the container "
            "with --device=/dev/kfd --device=/dev/dri"
        )


def _gpu(gpu: MergedGpu) -> Iterator[str]:
    head, *rest = gpu_lines(gpu)
    yield f"device     {head}"
    yield from (f"  {line}" for line in rest)


def _hip() -> Iterator[str]:
    """The HIP toolchain that builds candidates, and for which architectures."""
    try:
        toolchain = find_hip()
    except ToolchainUnavailable as error:
        yield f"hip        {error}"
        return
    use = "" if toolchain.is_rocm else "; compiles only, it has no runtime for a GPU"
    yield f"hip        HIP {toolchain.version}, {toolchain.compiler} ({toolchain.root}{use})"
    known = _architectures(toolchain)
    able = [arch for arch in ARCHITECTURES if arch in known]
    yield f"  targets  {', '.join(able) or 'neither of ' + ', '.join(ARCHITECTURES)}"
    for arch in ARCHITECTURES:
        if arch not in able:
            yield f"  missing  {arch}: this compiler does not list it; clang 20 or ROCm 7.0 and newer do"


def _architectures(toolchain: HipToolchain) -> set[str]:
    """The processors that the compiler names for AMD GPUs."""
    own = (toolchain.root / folder / "clang++" for folder in ("llvm/bin", "lib/llvm/bin"))
    compiler = next((path for path in own if path.is_file()), toolchain.hipcc)
    try:
        done = subprocess.run(
            [compiler, "--target=amdgcn-amd-amdhsa", "--print-supported-cpus"],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=VERSION_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return set()
    return set((done.stdout + done.stderr).split())


def _disk() -> Iterator[str]:
    for what, folder in (("here", "."), ("temporary files", tempfile.gettempdir())):
        yield f"disk       {shutil.disk_usage(folder).free / GIB:.1f} GiB free for {what} ({folder})"
