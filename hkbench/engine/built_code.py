"""What the device code says that a measured candidate's build left: registers, LDS, spills.

It is read when the candidate's processes have ended, as what it is: files that a candidate could write. The figures
advise; no verdict turns on them. LLVM's tools read them in a cage, from copies.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from hkbench.backends import Backend, find_backend
from hkbench.engine.confinement import Cages
from hkbench.errors import ToolchainUnavailable
from hkbench.profile.names import base, contents
from hkbench.records import IdleWait, KernelResources, Verdict
from hkbench.sandbox.folders import TooDeep
from hkbench.toolchain.build_hip import reads
from hkbench.toolchain.code_object import SECTION, NoDeviceCode, NotInspected, Tools
from hkbench.toolchain.findings import lost_loads
from hkbench.toolchain.hip import HipToolchain, find_hip
from hkbench.toolchain.resources import read_library

MAX_LIBRARIES = 8
SECONDS = 60.0  #: for all of them


async def with_built_code(verdict: Verdict, folder: Path, scratch: Path, arch: str, cages: Cages) -> Verdict:
    """Add to the verdict the kernels of the libraries in `folder`, and a warning for each that may compute wrongly.

    As it was where no library has AMD device code. `scratch` is made, for the copies; whoever made `folder` removes
    both.
    """
    return await asyncio.to_thread(_with_built_code, verdict, folder, scratch, arch, cages)


def code_warnings(kernels: Sequence[KernelResources], backend: Backend) -> list[str]:
    """Return what of the compiled code makes results wrong: loads that do not arrive, and spills.

    A spill is a warning where registers are kept in scratch; where a backend's waits count memory operations, wherever
    scratch is used at all.
    """
    lost = [f"{base(kernel.name) or kernel.name}: {said}" for kernel in kernels if (said := lost_loads(kernel))]
    return [*lost, *(_spill_warning(kernel, backend) for kernel in kernels if _spills(kernel, backend))]


def _spills(kernel: KernelResources, backend: Backend) -> bool:
    scratch, spilled = bool(kernel.scratch_bytes_per_lane), bool(kernel.vgpr_spills)
    return scratch or spilled if backend.waits_by_counting else scratch and spilled


def _spill_warning(kernel: KernelResources, backend: Backend) -> str:
    name = base(kernel.name) or kernel.name
    spilled, scratch = kernel.vgpr_spills or 0, kernel.scratch_bytes_per_lane or 0
    risk = (
        f"{backend.title} waits by counting memory operations, and scratch is counted with them: its results may be "
        "wrong now and then"
        if backend.waits_by_counting
        else "Scratch is slow, and where waits are placed by hand results can be wrong"
    )
    return f"{name} spills: {spilled} VGPRs, {scratch} bytes of scratch a lane. {risk}"


def _with_built_code(verdict: Verdict, folder: Path, scratch: Path, arch: str, cages: Cages) -> Verdict:
    kernels: list[KernelResources] = []
    unread: dict[str, None] = {}
    try:
        for library, tools in _libraries(folder, scratch, cages):
            try:
                kernels += read_library(library, arch, tools)
            except NoDeviceCode:
                continue
            except NotInspected as reason:
                unread[f"registers and spills of the built kernels: {reason}"] = None
    except (ToolchainUnavailable, TooDeep) as error:
        unread[f"registers and spills of the built kernels: {error}"] = None
    backend = find_backend(verdict.conditions.backend)
    seen = verdict.conditions
    conditions = seen.model_copy(
        update={
            "warnings": (*seen.warnings, *code_warnings(kernels, backend)),
            "not_checked": (*seen.not_checked, *unread),
        }
    )
    noted = tuple(with_idle_waits(kernel, verdict.idle_waits) for kernel in kernels)
    return verdict.model_copy(update={"resources": noted, "conditions": conditions})


def with_idle_waits(kernel: KernelResources, waits: Sequence[IdleWait]) -> KernelResources:
    """Add to the findings on a kernel the waits that were of no use when it was executed."""
    name = base(kernel.name) or kernel.name
    idle = tuple(str(wait) for wait in waits if wait.kernel == name and not kernel.is_function)
    return kernel.model_copy(update={"findings": (*kernel.findings, *idle)}) if idle else kernel


def _libraries(folder: Path, scratch: Path, cages: Cages) -> Iterator[tuple[Path, Tools]]:
    """Copy the libraries that hold AMD device code; yield each copy with the tools to read it.

    Raises ToolchainUnavailable when there is one, and no HIP compiler beside which the tools would be.
    """
    deadline = time.monotonic() + SECONDS
    toolchain: HipToolchain | None = None
    found = 0
    for _, content in contents(str(folder), (".so",)):
        if SECTION.encode() not in content:  # as a section is called, its name stands in the file
            continue
        toolchain = toolchain or find_hip()
        own = scratch / str(found)
        own.mkdir(parents=True)
        copy = own / "built.so"
        copy.write_bytes(content)
        yield copy, Tools(toolchain, own, deadline, cages.tool(own, *reads(toolchain)))
        found += 1
        if found == MAX_LIBRARIES:
            return
