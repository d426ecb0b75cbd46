"""What hkbench doctor says of programs, HipKittens and profilers, and what to do where one is missing."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from hkbench.cli.doctor_row import AMD, ANY, NVIDIA, Row, detail
from hkbench.device_kinds import model_of
from hkbench.errors import HkbenchError, ToolchainUnavailable
from hkbench.profile import Profiler, choose
from hkbench.profile.installed import PACKAGES, Standing, standings
from hkbench.records import DeviceFacts, DeviceKind
from hkbench.sandbox.environment import runner_path
from hkbench.shipped import installing
from hkbench.toolchain.emulated import find_objdump
from hkbench.toolchain.hip import ARCHITECTURES, HipToolchain, find_hip
from hkbench.toolchain.hipkittens import Checkout, Dialect, find_checkout, refusals, wrong_results
from hkbench.toolchain.programs import find_cxx
from hkbench.toolchain.triton import find_triton

#: Programs, with the arguments that make them tell their version.
COMPILERS = {"g++": "--version", "nvcc": "--version", "hipcc": "--version", "ninja": "--version"}
#: Without these no extension is built, whatever the device.
ALWAYS_NEEDED = frozenset({"g++", "ninja"})
#: Where a missing program comes from, and what does without it.
ADVICE = {
    "g++": "backend cpp and every extension need it; Debian and Ubuntu: apt-get install g++",
    "nvcc": "only backend cuda needs it; it is part of the CUDA toolkit",
    "hipcc": "on PATH; the line hip says what builds HIP candidates",
    "ninja": f"`{installing('ninja')}` installs it",
    "git": "only the commit of a HipKittens checkout needs it",
}
_FOR = {"nvcc": NVIDIA, "hipcc": AMD}
VERSION_SECONDS = 20.0
EMULATED = ("gfx942", "gfx950")


def program(role: str, name: str, flag: str, needed: bool = False) -> Row:
    """Return the row; `needed`: without it nothing can be built for the devices that are here."""
    found = shutil.which(name, path=runner_path())
    if found is not None:
        return Row(role, f"{name}: {_version(found, flag)} ({found})")
    advice = f" ({ADVICE[name]})" if name in ADVICE else ""
    problem = f"{name} is needed here: install it" if needed else None
    return Row(role, f"{name}: not found{advice}", problem=problem, missing_for=_FOR.get(name, ANY))


def _version(program: str, flag: str) -> str:
    """Return the line that holds a version, as the program prints it."""
    try:
        done = subprocess.run(
            [program, flag], capture_output=True, text=True, errors="replace", check=False, timeout=VERSION_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run: {error}"
    lines = [line.strip() for line in done.stdout.splitlines() if any(letter.isdigit() for letter in line)]
    named = [line for line in lines if "release" in line or "ersion" in line]
    return (named or lines or [f"does not say its version (exit code {done.returncode})"])[0]


def hipkittens() -> Row:
    """Return which HipKittens serves here, of which commit or package, and which of its dialects compile."""
    try:
        found = find_checkout()
    except HkbenchError as error:
        return Row("hipkittens", str(error), missing_for=AMD)
    text = f"{found.describe()}{', with changes in include/' if found.changed else ''}"
    try:
        toolchain = find_hip()
    except ToolchainUnavailable:
        return Row("hipkittens", text, (detail("targets", "not tried: there is no HIP compiler"),))
    with ThreadPoolExecutor() as pool:
        tried = dict(zip(found.dialects, pool.map(partial(_refused, found, toolchain), found.dialects), strict=True))
    names = {dialect: f"{dialect} ({dialect.arch})" for dialect in found.dialects}
    good = [names[dialect] for dialect, refused in tried.items() if refused is None]
    lines = [detail("targets", f"{', '.join(good) or 'none'}: kittens.cuh compiles with HIP {toolchain.version}")]
    lines += [detail("missing", f"{names[dialect]}: {refused}") for dialect, refused in tried.items() if refused]
    for dialect in found.dialects:
        lines += [detail("warning", said) for said in wrong_results(dialect, toolchain.compiler)]
        lines += [detail("known", said) for said in refusals(dialect, toolchain.compiler)]
    return Row("hipkittens", text, tuple(lines))


def _refused(found: Checkout, toolchain: HipToolchain, dialect: Dialect) -> str | None:
    """Return why a dialect's headers do not compile here; None where they do."""
    with tempfile.TemporaryDirectory(prefix="hkbench-doctor-") as folder:
        try:
            found.require(dialect, toolchain, Path(folder))
        except HkbenchError as error:
            return str(error)
    return None


def emulated() -> Row:
    """Return whether an emulated GPU has what it needs: hipcc, LLVM's disassembler, a C++ compiler, headers."""
    devices = ", ".join(f"--device emulated:{arch}" for arch in EMULATED)
    try:
        toolchain = find_hip()
        objdump, compiler = find_objdump(toolchain), find_cxx()
    except ToolchainUnavailable as error:
        return Row("emulated", f"no emulated GPU: {error}", missing_for=ANY)
    lines = [detail("builds", f"with {compiler}, once, a minute or two at first use")]
    try:
        find_checkout()
        lines.append(detail("kernels", "HIP, Triton, HipKittens"))
    except HkbenchError:
        lines.append(detail("kernels", "HIP, Triton; of HipKittens the headers are missing"))
    return Row("emulated", f"{devices}: HIP {toolchain.version}, {objdump}", tuple(lines))


def triton() -> Row:
    """Return whether Triton is here with what compiles for AMD GPUs, without importing it."""
    try:
        found = find_triton()
    except ToolchainUnavailable as error:
        return Row("triton", str(error), missing_for=AMD | NVIDIA)
    archs = ", ".join(ARCHITECTURES)
    return Row("triton", f"{found.version}, with its AMD back end: compiles for {archs} ({found.root})")


def profilers(devices: Sequence[DeviceFacts]) -> Iterator[Row]:
    """Yield each maker's profiler, found or not, and which one is used on each GPU."""
    rows = []
    for kind in (DeviceKind.ROCM, DeviceKind.CUDA):
        archs = {facts.arch for facts in devices if facts.kind is kind}
        rows += [_profiler(one) for one in standings(kind, next(iter(archs)) if len(archs) == 1 else None)]
    gpus = [facts for facts in devices if not model_of(facts.kind).on_host]
    used = [f"{facts.kind} {facts.index}: {choose(facts.kind, facts.arch).profiler}" for facts in gpus]
    used = used or [f"{Profiler.TORCH}: no GPU was looked for, or none can be used"]
    yield from rows[:-1]
    yield replace(rows[-1], details=tuple(detail("used", text) for text in used))


def _profiler(one: Standing) -> Row:
    name = one.profiler.value
    if one.program is None:
        maker = NVIDIA if one.profiler is Profiler.NCU else AMD
        text = f"{name}: not found ({PACKAGES[one.profiler]}; torch's profiler is used in its place)"
        return Row("profiler", text, missing_for=maker)
    text = f"{name}: {_version(one.program, '--version')} ({one.program})"
    if one.obstacle is not None:
        return Row("profiler", f"{text}; not used: {one.obstacle}")
    return Row("profiler", text if one.caution is None else f"{text}; {one.caution}")
