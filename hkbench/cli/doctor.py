"""hkbench doctor: what this machine can do, and how far candidates are confined on it."""

from __future__ import annotations

import argparse
import asyncio
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata

from hkbench.engine import Evaluator
from hkbench.engine.confinement import survey
from hkbench.errors import HkbenchError
from hkbench.records import DeviceFacts, Isolation, JudgeSettings
from hkbench.sandbox.environment import runner_path

DESCRIPTION = "Show how far candidates are confined on this machine, and which devices and compilers it has."

#: Programs, with the arguments that make them tell their version.
COMPILERS = {"g++": "--version", "nvcc": "--version", "hipcc": "--version", "ninja": "--version"}
PROFILERS = {"ncu": "--version", "rocprofv3": "--version"}
VERSION_SECONDS = 20.0
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
    if look_for_devices:
        lines += await _devices()
    lines += [_program("compiler", name, flag) for name, flag in COMPILERS.items()]
    lines += [_program("profiler", name, flag) for name, flag in PROFILERS.items()]
    return [*lines, *_disk()]


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


async def _devices() -> list[str]:
    try:
        async with Evaluator(None, JudgeSettings()) as evaluator:
            return [_device(facts) for facts in evaluator.devices]
    except HkbenchError as error:
        return [f"device     none can be used: {error}"]


def _device(facts: DeviceFacts) -> str:
    arch = f", {facts.arch}" if facts.arch else ""
    return f"device     {facts.kind} {facts.index}: {facts.name}{arch}"


def _program(role: str, name: str, flag: str) -> str:
    found = shutil.which(name, path=runner_path())
    return f"{role:<10} {name}: " + ("not found" if found is None else f"{_version(found, flag)} ({found})")


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


def _disk() -> Iterator[str]:
    for what, folder in (("here", "."), ("temporary files", tempfile.gettempdir())):
        yield f"disk       {shutil.disk_usage(folder).free / GIB:.1f} GiB free for {what} ({folder})"
