"""hkbench doctor: what this machine can do, and how far candidates are confined on it."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from hkbench.cli.arguments import add_base_url, add_prompts
from hkbench.cli.configuration import FILE, configure
from hkbench.cli.doctor_machine import disks, gateway, memory, problems, prompts
from hkbench.cli.doctor_row import AMD, Row, detail
from hkbench.cli.doctor_tools import (
    ALWAYS_NEEDED,
    COMPILERS,
    VERSION_SECONDS,
    emulated,
    hipkittens,
    profilers,
    program,
    triton,
)
from hkbench.device_kinds import model_of
from hkbench.devices.amd_smi import ask_amd_smi
from hkbench.devices.describe import gpu_lines
from hkbench.devices.merge import MergedGpu, alone, merge
from hkbench.devices.reading import SourceReport
from hkbench.engine import factory
from hkbench.engine.confinement import survey
from hkbench.engine.library_free import why_in_reach
from hkbench.errors import HkbenchError, ToolchainUnavailable, Unavailable
from hkbench.headline import plural
from hkbench.records import DeviceFacts, DeviceKind, EvaluationSettings, Isolation
from hkbench.shipped import installing
from hkbench.store.sanitize import strip_escapes
from hkbench.toolchain.hip import ARCHITECTURES, HipToolchain, find_hip

DESCRIPTION = """Show what this machine can do: confinement, devices, compilers, profilers, model service, disk, memory.

Nothing is changed, no model is called: where a key or an address is set, the service is asked for its models.
Each line begins with ok, missing (what it is for is said), not needed (on this machine) or problem (with what to do).
Exit code: 0 there is no problem, 69 there is one."""

_STATE = 10  #: columns of a row's state
KFD = Path("/dev/kfd")  #: there where the kernel's driver has found an AMD GPU


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-devices", action="store_true", help="do not import torch to look for devices (seconds)")
    parser.add_argument("--all", action="store_true", help="show each thing that only a GPU that is not here needs")
    parser.add_argument("--json", action="store_true", help="print the same as data")
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="where runs would go (default: results)"
    )
    parser.add_argument("--problems", type=Path, metavar="DIR", help="folder of problems (default: as hkbench run)")
    add_prompts(parser)
    add_base_url(parser)
    parser.add_argument("--model", help="whether the service lists this model")


def run(options: argparse.Namespace) -> int:
    """Print all rows: what only some runs need is shown as missing, what all need is a problem."""
    found = _settings(options)
    rows, kinds = asyncio.run(_report(options))
    rows = [*found, *rows]
    bad = [row for row in rows if row.problem is not None]
    if options.json:
        data = {"schema_version": 1, "problems": len(bad), "rows": [row.data(kinds) for row in rows]}
        print(json.dumps(data, indent=2))
    else:
        for row in rows if options.all else _folded(rows, kinds):
            first, *more = (strip_escapes(line) for line in row.lines())
            print(f"{row.state(kinds):<{_STATE}} {first}")
            for line in more:
                print(f"{'':{_STATE}} {line}")
        print()
        print(_sum(bad))
    return Unavailable.exit_code if bad else 0


def _folded(rows: Sequence[Row], kinds: Collection[DeviceKind] | None) -> list[Row]:
    """Return the rows, with those that only an AMD GPU needs in one where there is none."""
    folded = [row for row in rows if row.missing_for == AMD and row.state(kinds) == "not needed"]
    if not folded:
        return list(rows)
    names = ", ".join(
        row.text.partition(":")[0] if row.what in ("compiler", "profiler") else row.what for row in folded
    )
    one = Row("AMD", f"{names}: not here, as no AMD GPU is (--all shows each)", missing_for=AMD)
    return [*(row for row in rows if row not in folded), one]


def _settings(options: argparse.Namespace) -> list[Row]:
    """Take model and address from the environment or hkbench.toml; a row where that is not possible."""
    try:
        configure(options)
    except HkbenchError as error:
        return [Row("settings", "cannot be used", problem=str(error))]
    return [Row("settings", f"{FILE} is read")] if FILE.is_file() else []


def _sum(bad: Sequence[Row]) -> str:
    if not bad:
        return "Ready: no problems found"
    names = ", ".join(dict.fromkeys(row.what for row in bad))
    return f"Not ready: {plural(len(bad), 'problem')}: {names}"


async def _report(options: argparse.Namespace) -> tuple[list[Row], Collection[DeviceKind] | None]:
    """Return the rows, and the kinds of the devices that are here; None with --no-devices."""
    service = asyncio.create_task(asyncio.to_thread(gateway, options.base_url, options.model))
    isolation = await survey()
    rows = [_isolation(isolation), Row("python", f"{platform.python_version()} ({sys.executable})"), _torch()]
    devices: tuple[DeviceFacts, ...] = ()
    if not options.no_devices:
        found, devices = await _devices()
        rows += found
    kinds = {facts.kind for facts in devices}
    rows += _own_work(kinds, isolation)
    needed = ALWAYS_NEEDED | ({"nvcc"} if DeviceKind.CUDA in kinds else set())
    rows += [program("compiler", name, flag, name in needed) for name, flag in COMPILERS.items()]
    rows += [_hip(needed=DeviceKind.ROCM in kinds), hipkittens(), emulated(), triton(), *profilers(devices)]
    rows += [program("program", "git", "--version"), prompts(options.prompts), problems(options.problems)]
    on_gpu = any(not model_of(kind).on_host for kind in kinds)
    rows += [*disks(options.results, on_gpu), memory(), await service]
    here = kinds | ({DeviceKind.ROCM} if KFD.exists() else set())
    return rows, None if options.no_devices else here


def _isolation(isolation: Isolation) -> Row:
    layers, holds = detail("layers", ", ".join(isolation.layers)), detail("holds", ", ".join(isolation.holds))
    missing = (detail("missing", line) for line in isolation.missing)
    return Row("isolation", isolation.level.value, (layers, holds, *missing))


def _own_work(kinds: Collection[DeviceKind], isolation: Isolation) -> Iterator[Row]:
    """Return for each kind of GPU whether it can be established that a candidate computes with kernels of its own."""
    for kind in sorted(kinds):
        if model_of(kind).on_host:
            continue
        reason = why_in_reach(kind, isolation)
        if reason is None:
            text = "libraries can be kept from candidates; a run checks at its first one that the device works so"
            yield Row("own work", f"{kind}: {text}")
        else:
            yield Row("own work", f"{kind}: not_established, as {reason}", missing_for=frozenset({kind}))


def _torch() -> Row:
    """Return torch's row from the package's own data: the engine never imports it. Its version names its build."""
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return Row("torch", "not installed", problem=f"`{installing('torch')}` installs one")
    build = version.partition("+")[2] or "not said by its version"
    return Row("torch", f"{version} (built for: {build})")


async def _devices() -> tuple[list[Row], tuple[DeviceFacts, ...]]:
    """Return every device, and those that torch can use."""
    rows: list[Row] = []
    devices: tuple[DeviceFacts, ...] = ()
    try:
        devices = await _torch_devices()
    except HkbenchError as error:
        rows.append(Row("device", "none can be used", problem=str(error)))
    rocm = [facts for facts in devices if facts.kind is DeviceKind.ROCM]
    for facts in devices:
        if model_of(facts.kind).on_host:
            text = f"{facts.kind} {facts.index}: {facts.name}" + (f", {facts.arch}" if facts.arch else "")
            rows.append(Row("device", text))
        elif facts.kind is DeviceKind.CUDA:
            rows.append(_gpu(alone(facts)))
    if rocm or KFD.exists():
        rows += _amd(rocm, await asyncio.to_thread(ask_amd_smi))
    return rows, devices


async def _torch_devices() -> tuple[DeviceFacts, ...]:
    async with factory.local_evaluator(None, EvaluationSettings()) as evaluator:
        return evaluator.devices


def _amd(rocm: list[DeviceFacts], smi: SourceReport) -> list[Row]:
    """Return AMD GPUs by all sources; below the last, what a source could not say, and why torch cannot use them."""
    gpus = merge(rocm, smi)
    more = [detail("missing", f"{smi.source}: {smi.error}")] if smi.error is not None else []
    if gpus and not rocm:
        text = "torch cannot use an AMD GPU here: it has to be a ROCm build, `TORCH_INDEX=... make setup`"
        more.append(detail("warning", text))
    if not rocm and KFD.exists() and not os.access(KFD, os.R_OK | os.W_OK):
        text = (
            f"{KFD} may not be opened by this user: join its group (render, video), or start the container "
            "with --device=/dev/kfd --device=/dev/dri"
        )
        more.append(detail("warning", text))
    rows = [_gpu(gpu) for gpu in gpus] or [Row("device", f"rocm: {KFD} is there, and no GPU was found")]
    return [*rows[:-1], replace(rows[-1], details=(*rows[-1].details, *more))]


def _gpu(gpu: MergedGpu) -> Row:
    head, *rest = gpu_lines(gpu)
    return Row("device", head, tuple(rest))


def _hip(needed: bool = False) -> Row:
    """Return the HIP toolchain that builds candidates, and for which architectures."""
    try:
        toolchain = find_hip()
    except ToolchainUnavailable as error:
        return Row("hip", str(error), problem="an AMD GPU's candidates need it" if needed else None, missing_for=AMD)
    use = "" if toolchain.is_rocm else "; compiles only, it has no runtime for a GPU"
    known = _architectures(toolchain)
    able = [arch for arch in ARCHITECTURES if arch in known]
    why = "this compiler does not list it; clang 20 or ROCm 7.0 and newer do"
    missing = (detail("missing", f"{arch}: {why}") for arch in ARCHITECTURES if arch not in able)
    targets = detail("targets", ", ".join(able) or "neither of " + ", ".join(ARCHITECTURES))
    text = f"HIP {toolchain.version}, {toolchain.compiler} ({toolchain.root}{use})"
    return Row("hip", text, (targets, *missing))


def _architectures(toolchain: HipToolchain) -> set[str]:
    """Return the processors that the compiler names for AMD GPUs."""
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
