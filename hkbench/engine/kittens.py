"""HipKittens for a run on an AMD GPU: looked for before the first candidate, and named in every verdict."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import NamedTuple

from hkbench.errors import UsageError
from hkbench.records import DeviceFacts, DeviceKind
from hkbench.toolchain.hip import find_hip
from hkbench.toolchain.hipkittens import dialect_for, find_checkout, wrong_results


class Kittens(NamedTuple):
    """What every verdict of a run with HipKittens says."""

    versions: dict[str, str]  #: dialect, commit or package, and hash of the headers (`Checkout.versions`)
    warnings: tuple[str, ...]  #: what the compiler is known to get wrong


async def find_kittens(device: DeviceFacts) -> Kittens:
    """The headers that candidates for `device` are built with, tried with the compiler.

    Without it every candidate would fail to load, for a fault of the machine's.

    Raises:
        UsageError: the device is no AMD GPU.
        ToolchainUnavailable, InputMissing: no checkout, or none that serves the device and compiles here.
    """
    if device.kind is not DeviceKind.ROCM or device.arch is None:
        raise UsageError(
            f"backend hipkittens is for AMD GPUs, and this device is {device.name}; eval.py --build-only --backend "
            "hipkittens --arch gfx942 compiles a candidate without one"
        )
    dialect, checkout = dialect_for(device.arch), find_checkout()
    toolchain = find_hip()
    with tempfile.TemporaryDirectory(prefix="hkbench-kittens-") as folder:
        await asyncio.to_thread(checkout.require, dialect, toolchain, Path(folder))
    return Kittens(checkout.versions(dialect), wrong_results(dialect, toolchain.compiler))
