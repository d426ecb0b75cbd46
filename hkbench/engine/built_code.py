"""What the device code says that a measured candidate's build left: registers, LDS, spills.

It is read when the candidate's processes have ended, as what it is: files that a candidate could write. The figures
advise; no verdict turns on them. LLVM's tools read them in a cage, from copies.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from hkbench.engine.confinement import Cages
from hkbench.errors import ToolchainUnavailable
from hkbench.profile.names import base, contents
from hkbench.records import Backend, KernelResources, Verdict
from hkbench.sandbox.folders import TooDeep
from hkbench.toolchain.build_hip import reads
from hkbench.toolchain.code_object import SECTION, NoDeviceCode, NotInspected, Tools
from hkbench.toolchain.findings import lost_loads
from hkbench.toolchain.hip import HipToolchain, find_hip
from hkbench.toolchain.resources import read_library

MOST_LIBRARIES = 8
SECONDS = 60.0  #: for all of them


async def with_built_code(verdict: Verdict, folder: Path, scratch: Path, arch: str, cages: Cages) -> Verdict:
    """The verdict with the kernels of the libraries in `folder`, and a warning for each that may compute wrongly.

    As it was where no library has AMD device code. `scratch` is made, for the copies; whoever made `folder` removes
    both.
    """
    return await asyncio.to_thread(_with_built_code, verdict, folder, scratch, arch, cages)


def code_warnings(kernels: Sequence[KernelResources], hipkittens: bool) -> list[str]:
    """What of the compiled code makes results wrong: loads that do not arrive, and spills.

    A spill is a warning where registers are kept in scratch; in HipKittens wherever scratch is used at all.
    """
    lost = [f"{base(kernel.name) or kernel.name}: {said}" for kernel in kernels if (said := lost_loads(kernel))]
    return [*lost, *(_spill_warning(kernel, hipkittens) for kernel in kernels if _spills(kernel, hipkittens))]


def _spills(kernel: KernelResources, hipkittens: bool) -> bool:
    scratch, spilled = bool(kernel.scratch_bytes_per_lane), bool(kernel.vgpr_spills)
    return scratch or spilled if hipkittens else scratch and spilled


def _spill_warning(kernel: KernelResources, hipkittens: bool) -> str:
    name = base(kernel.name) or kernel.name
    spilled, scratch = kernel.vgpr_spills or 0, kernel.scratch_bytes_per_lane or 0
    risk = (
        "HipKittens waits by counting memory operations, and scratch is counted with them: its results may be wrong "
        "now and then"
        if hipkittens
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
    hipkittens = verdict.conditions.backend is Backend.HIPKITTENS
    seen = verdict.conditions
    conditions = seen.model_copy(
        update={
            "warnings": (*seen.warnings, *code_warnings(kernels, hipkittens)),
            "not_checked": (*seen.not_checked, *unread),
        }
    )
    return verdict.model_copy(update={"resources": tuple(kernels), "conditions": conditions})


def _libraries(folder: Path, scratch: Path, cages: Cages) -> Iterator[tuple[Path, Tools]]:
    """Copies of the libraries that hold AMD device code, each with the tools to read it.

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
        if found == MOST_LIBRARIES:
            return
