"""Reads clang's `-Rpass-analysis=kernel-resource-usage` remarks: registers, LDS and spills of each kernel."""

from __future__ import annotations

import re
import shutil
import subprocess

from hkbench.records import KernelResources

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
    """One record a kernel, in the compiler's order, with the names as the compiler prints them (mangled).

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
    """The compiler's output without these remarks and the source lines that it shows below each."""
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
    """The same records with C++ names, by binutils' c++filt; unchanged where that tool is missing."""
    tool = shutil.which("c++filt") or shutil.which("llvm-cxxfilt")
    if tool is None or not resources:
        return resources
    mangled = "".join(f"{kernel.name}\n" for kernel in resources)
    shown = subprocess.run([tool], input=mangled, capture_output=True, text=True, timeout=30, check=False)
    names = shown.stdout.splitlines()
    if shown.returncode != 0 or len(names) != len(resources):
        return resources
    return tuple(kernel.model_copy(update={"name": name}) for kernel, name in zip(resources, names, strict=True))
