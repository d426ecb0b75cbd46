"""HipKittens: HIP C++ on tiles, with the headers of a checkout or package that the environment names."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hipkittens_build.source import MACROS
from hkbench.backends.base import Backend, CompileOnly, Provision
from hkbench.backends.hip import HIP, recognise_hip
from hkbench.backends.targets import HipTarget, hip_target
from hkbench.profile.names import device_functions
from hkbench.records import DeviceFacts, DeviceKind, EvaluationSettings, KernelLanguage
from hkbench.toolchain.hip import HipToolchain, find_hip
from hkbench.toolchain.hipkittens import Checkout, Dialect, dialect_for, find_checkout, wrong_results
from hkbench.toolchain.programs import find_extension_tools


async def provide(device: DeviceFacts) -> Provision:
    """Find the headers that candidates for `device` are built with, and try them with the compiler.

    Without it every candidate would fail to load, for a fault of the machine's.

    Returns:
        Dialect, commit or package and hash of the headers (`Checkout.versions`); what the compiler is known to get
        wrong.

    Raises:
        UsageError: the device is no AMD GPU.
        ToolchainUnavailable, InputMissing: no checkout, or none that serves the device and compiles here.
    """
    HIPKITTENS.check_device(device.kind if device.arch is not None else DeviceKind.CPU, device.name)
    dialect, checkout = dialect_for(device.arch or ""), find_checkout()
    toolchain = find_hip()
    await _require(checkout, dialect, toolchain)
    return Provision(checkout.versions(dialect), wrong_results(dialect, toolchain.compiler))


async def _find_target(arch: str, settings: EvaluationSettings) -> HipTarget:
    toolchain = find_hip()
    checkout, dialect = find_checkout(), dialect_for(arch)
    await _require(checkout, dialect, toolchain)
    return hip_target(HIPKITTENS.name, arch, settings, toolchain, (checkout, dialect))


async def _require(checkout: Checkout, dialect: Dialect, toolchain: HipToolchain) -> None:
    with tempfile.TemporaryDirectory(prefix="hkbench-kittens-") as folder:
        await asyncio.to_thread(checkout.require, dialect, toolchain, Path(folder))


def language_warning(found: KernelLanguage | None) -> str | None:
    """Say that a candidate for HipKittens does not use it."""
    if found is None or found.backend == HIPKITTENS.name:
        return None
    what = "plain HIP" if found.backend == HIP.name else found.backend
    return f"not {HIPKITTENS.title} but {what}: {found.reason}"


HIPKITTENS = Backend(
    name="hipkittens",
    language="HipKittens (HIP C++ with kittens.cuh)",
    devices=frozenset({DeviceKind.ROCM}),
    programming_model="threads",
    card="_backend_hipkittens.txt",
    dialects={"gfx942": "cdna3", "gfx950": "cdna4"},
    find_tools=(find_extension_tools, find_hip),
    compile_only=CompileOnly(tuple(MACROS), find_hip, _find_target),
    provide=provide,
    kernels_in=device_functions,
    recognise=recognise_hip,
    language_warning=language_warning,
    reads_amd_code=True,
    waits_by_counting=True,
)
