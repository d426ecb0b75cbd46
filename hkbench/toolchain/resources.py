"""What the compiler knows of each kernel: its resource remarks, and what the built code adds to them.

The remarks are clang's `-Rpass-analysis=kernel-resource-usage`: registers, LDS and spills.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hkbench.records import KernelResources
from hkbench.toolchain.code_object import KernelMetadata, Tools, code_objects, metadata
from hkbench.toolchain.disassembly import instruction_counts
from hkbench.toolchain.findings import findings
from hkbench.toolchain.occupancy import occupancy

_REMARK = re.compile(
    r"remark: (?:[^\n]*?: )?\s*(?P<key>[A-Za-z][A-Za-z ]*?)(?: \[[^\]]*\])?: (?P<value>.*?)"
    r"(?: \[-Rpass-analysis=kernel-resource-usage\])?$"
)
_FIELDS = {
    "VGPRs": "vgprs",
    "AGPRs": "agprs",
    "TotalSGPRs": "sgprs",
    "SGPRs": "sgprs",
    "ScratchSize": "scratch_bytes_per_lane",
    "Occupancy": "occupancy_waves_per_simd",
    "SGPRs Spill": "sgpr_spills",
    "VGPRs Spill": "vgpr_spills",
    "LDS Size": "lds_bytes",
}


def parse_resources(text: str, arch: str) -> tuple[KernelResources, ...]:
    """Return one record a kernel, in the compiler's order, with the names as the compiler prints them (mangled).

    Lines that are no such remark are passed over; a figure that the compiler does not give stays None. A kernel
    reported twice (one remark a translation unit that instantiates it) is kept once.
    """
    found: dict[str, dict[str, int]] = {}
    current: dict[str, int] | None = None
    for line in text.splitlines():
        match = _REMARK.search(line)
        if match is None:
            continue
        key, value = match["key"], match["value"].strip()
        if key == "Function Name":
            current = found.setdefault(value, {})
        elif current is not None and key in _FIELDS and value.isdigit():
            current[_FIELDS[key]] = int(value)
    return tuple(KernelResources(name=name, arch=arch, **figures) for name, figures in found.items() if figures)


def without_remarks(text: str) -> str:
    """Return the compiler's output without these remarks and the source lines that it shows below each."""
    kept = []
    inside = False
    for line in text.splitlines():
        if "[-Rpass-analysis=kernel-resource-usage]" in line:
            inside = True
        elif "note: could not determine the original source location" in line:
            continue  # the remark's line is one of a `#line` mark, whose file does not exist
        elif not (inside and re.match(r"\s*\d*\s*\|", line)):
            inside = False
            kept.append(line)
    return "\n".join(kept)


def demangled(resources: tuple[KernelResources, ...]) -> tuple[KernelResources, ...]:
    """Return the same records with C++ names, by binutils' c++filt; unchanged where that tool is missing."""
    tool = shutil.which("c++filt") or shutil.which("llvm-cxxfilt")
    if tool is None or not resources:
        return resources
    mangled = "".join(f"{kernel.name}\n" for kernel in resources)
    shown = subprocess.run([tool], input=mangled, capture_output=True, text=True, timeout=30, check=False)
    names = shown.stdout.splitlines()
    if shown.returncode != 0 or len(names) != len(resources):
        return resources
    return tuple(kernel.model_copy(update={"name": name}) for kernel, name in zip(resources, names, strict=True))


def inspected(
    resources: tuple[KernelResources, ...], library: Path, arch: str, tools: Tools
) -> tuple[KernelResources, ...]:
    """Return the records with what the device code in `library` adds; names have to be mangled still.

    Device functions that were not inlined follow the kernels as records of their own. Raises NotInspected.
    """
    return completed(resources, *_device_code(library, arch, tools))


def read_library(library: Path, arch: str, tools: Tools) -> tuple[KernelResources, ...]:
    """Return what the device code in `library` says of each kernel, where the compiler's remarks are not at hand.

    VGPRs count up to a multiple of four where a kernel has AGPRs; the compiler's Occupancy remark is not in it, nor a
    cap that the source sets by `amdgpu_waves_per_eu`. Raises NotInspected, NoDeviceCode.
    """
    kernels, counts = _device_code(library, arch, tools)
    known = tuple(from_metadata(kernel, arch) for kernel in kernels)
    return with_findings(demangled(completed(known, kernels, counts)))


def _device_code(library: Path, arch: str, tools: Tools) -> tuple[list[KernelMetadata], dict[str, dict[str, int]]]:
    """Return the kernels of all code objects for `arch`, and the instructions of each function by its mangled name."""
    kernels: list[KernelMetadata] = []
    counts: dict[str, dict[str, int]] = {}
    for code_object in code_objects(library, arch, tools):
        kernels += metadata(code_object, tools)
        counts |= instruction_counts(code_object, arch, tools)
    return kernels, counts


def from_metadata(kernel: KernelMetadata, arch: str) -> KernelResources:
    """Return the resources of a kernel. `.vgpr_count` counts AGPRs too (LLVM `SIProgramInfo`, gfx90a and later)."""
    return KernelResources(
        name=kernel.name,
        arch=arch,
        vgprs=None if kernel.registers is None else max(0, kernel.registers - (kernel.agprs or 0)),
        agprs=kernel.agprs,
        sgprs=kernel.sgprs,
        lds_bytes=kernel.lds_bytes,
        scratch_bytes_per_lane=kernel.scratch_bytes_per_lane,
        vgpr_spills=kernel.vgpr_spills,
        sgpr_spills=kernel.sgpr_spills,
        max_workgroup_size=kernel.max_workgroup_size,
    )


def completed(
    resources: tuple[KernelResources, ...], kernels: Sequence[KernelMetadata], counts: dict[str, dict[str, int]]
) -> tuple[KernelResources, ...]:
    """Add workgroup size, occupancy and instruction counts to the records, by mangled name, without findings."""
    sizes = {kernel.name: kernel.max_workgroup_size for kernel in kernels}
    found = []
    for kernel in resources:
        known: dict[str, object] = {"max_workgroup_size": sizes.get(kernel.name)}
        known["instructions"] = counts.get(kernel.name)
        known["dynamic_lds"] = _dynamic_lds(kernel.lds_bytes, counts.get(kernel.name))
        found.append(_with_occupancy(kernel.model_copy(update=known)))
    arch = resources[0].arch if resources else ""
    found += [
        KernelResources(name=name, arch=arch, instructions=count, is_function=True)
        for name, count in counts.items()
        if resources and name not in sizes
    ]
    return tuple(found)


def with_findings(resources: tuple[KernelResources, ...]) -> tuple[KernelResources, ...]:
    """Return the same records, each with its findings."""
    functions = tuple(one.name for one in resources if one.is_function)
    return tuple(one.model_copy(update={"findings": findings(one, functions)}) for one in resources)


def _with_occupancy(kernel: KernelResources) -> KernelResources:
    found = occupancy(kernel)
    if found is None:
        return kernel
    said: dict[str, object] = {"whole_workgroup_waves_per_simd": found.waves, "limited_by": found.limited_by}
    said |= {"next_step": found.next_step, "lds_budget": found.lds_budget}
    return kernel.model_copy(update=said)


def _dynamic_lds(static_bytes: int | None, counts: dict[str, int] | None) -> bool | None:
    """Return whether the kernel uses LDS that only a launch sizes; None where static LDS or a call hides the answer."""
    if counts is None or static_bytes is None:
        return None
    if any(name.startswith("lds_") or "_load_lds_" in name for name in counts):
        return True if static_bytes == 0 else None
    return None if "call" in counts else False
