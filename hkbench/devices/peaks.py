"""Data-sheet figures of the parts that hkbench meets, dense rates without sparsity.

A part that is not listed has no peaks: nothing is guessed. Sources, as each part names them:

AMD1  "GPU hardware specifications" in the ROCm documentation: CUs, LDS, L2 and Infinity Cache, memory.
AMD2  AMD's data sheets of MI300X, MI325X, MI350X and MI355X: rates, clocks, bandwidth. CDNA 4 has no TF32 in hardware.
NV1   NVIDIA's H100 architecture white paper, table of peak rates: SXM5 (tensor cores at 1830 MHz) and PCIe (1620 MHz).
NV2   NVIDIA's H200 data sheet: SXM and NVL, given with sparsity there, half of it here.
NV3   NVIDIA's H100 data sheet for the NVL: as NV2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hkbench.records import DeviceFacts

MIB = 1 << 20
GIB = 1 << 30
TERA = 1e12


@dataclass(frozen=True)
class Part:
    """One GPU model. `llc` counts the last cache before memory (Infinity Cache on MI300), bytes."""

    name: str
    pattern: re.Pattern[str]
    arch: str
    compute_units: int
    clock_mhz: int  #: the highest, as the runtime reports it
    memory: int  #: bytes; what a runtime reports is a little less
    bandwidth: float  #: bytes/s
    llc: int
    source: str
    #: FLOP/s by dtype, of those that products of a problem are computed in. The floor of a verdict takes the largest
    #: (analysis/roofline.py) and prompts print all.
    flops: dict[str, float] = field(default_factory=dict)
    #: Operations/s of formats in which those products would not meet the evaluator's tolerances, so that the floor
    #: leaves them out: "float8", "int8", "tfloat32" (AMD: xf32), "mxfloat8", "mxfloat6", "mxfloat4". What a part lacks
    #: is not there.
    narrow: dict[str, float] = field(default_factory=dict)

    @property
    def rates(self) -> dict[str, float]:
        """Operations/s of every format: for shares of a peak in profiles."""
        return self.flops | self.narrow


def _part(
    name: str,
    pattern: str,
    *,
    arch: str,
    units: int,
    mhz: int,
    gib: int,
    tera_bytes: float,
    llc_mib: int,
    source: str,
    tera_flops: dict[str, float],
    tera_narrow: dict[str, float],
) -> Part:
    return Part(
        name=name,
        pattern=re.compile(pattern, re.IGNORECASE),
        arch=arch,
        compute_units=units,
        clock_mhz=mhz,
        memory=gib * GIB,
        bandwidth=tera_bytes * TERA,
        llc=llc_mib * MIB,
        source=source,
        flops={dtype: value * TERA for dtype, value in tera_flops.items()},
        narrow={dtype: value * TERA for dtype, value in tera_narrow.items()},
    )


_CDNA3 = {"bfloat16": 1307.4, "float16": 1307.4, "float32": 163.4, "float64": 81.7}
_CDNA3_NARROW = {"float8": 2614.9, "int8": 2614.9, "tfloat32": 653.7}
_HOPPER = {"bfloat16": 989.4, "float16": 989.4, "float32": 66.9, "float64": 33.5}
_HOPPER_NARROW = {"float8": 1978.9, "int8": 1978.9, "tfloat32": 494.7}
_HOPPER_NVL = {"bfloat16": 835.5, "float16": 835.5, "float32": 60.0, "float64": 30.0}
_HOPPER_NVL_NARROW = {"float8": 1670.5, "int8": 1670.5, "tfloat32": 417.5}
_HOPPER_PCIE = {"bfloat16": 756.0, "float16": 756.0, "float32": 51.2, "float64": 25.6}
_HOPPER_PCIE_NARROW = {"float8": 1513.0, "int8": 1513.0, "tfloat32": 378.0}

# fmt: off
PARTS = (
    _part("MI300X", r"MI300X", arch="gfx942", units=304, mhz=2100, gib=192, tera_bytes=5.3, llc_mib=256,
          source="AMD1, AMD2", tera_flops=_CDNA3, tera_narrow=_CDNA3_NARROW),
    _part("MI325X", r"MI325X", arch="gfx942", units=304, mhz=2100, gib=256, tera_bytes=6.0, llc_mib=256,
          source="AMD1, AMD2", tera_flops=_CDNA3, tera_narrow=_CDNA3_NARROW),
    _part("MI355X", r"MI355X", arch="gfx950", units=256, mhz=2400, gib=288, tera_bytes=8.0, llc_mib=256,
          source="AMD1, AMD2",
          tera_flops={"bfloat16": 2516.6, "float16": 2516.6, "float32": 157.3, "float64": 78.6},
          tera_narrow={"float8": 5033.2, "int8": 5033.2,
                       "mxfloat8": 5033.2, "mxfloat6": 10066.3, "mxfloat4": 10066.3}),
    _part("MI350X", r"MI350X", arch="gfx950", units=256, mhz=2200, gib=288, tera_bytes=8.0, llc_mib=256,
          source="AMD1, AMD2",
          tera_flops={"bfloat16": 2300.0, "float16": 2300.0, "float32": 144.2, "float64": 72.1},
          tera_narrow={"float8": 4600.0, "int8": 4600.0,
                       "mxfloat8": 4600.0, "mxfloat6": 9200.0, "mxfloat4": 9200.0}),
    _part("H200 NVL", r"\bH200 (?:NVL|PCIe)", arch="sm_90", units=132, mhz=1785, gib=141, tera_bytes=4.8, llc_mib=50,
          source="NV2", tera_flops=_HOPPER_NVL, tera_narrow=_HOPPER_NVL_NARROW),
    _part("H200 SXM", r"\bH200(?! (?:NVL|PCIe))", arch="sm_90", units=132, mhz=1980, gib=141, tera_bytes=4.8,
          llc_mib=50, source="NV1, NV2", tera_flops=_HOPPER, tera_narrow=_HOPPER_NARROW),
    _part("H100 NVL", r"\bH100 NVL", arch="sm_90", units=132, mhz=1785, gib=94, tera_bytes=3.9, llc_mib=50,
          source="NV3", tera_flops=_HOPPER_NVL, tera_narrow=_HOPPER_NVL_NARROW),
    _part("H100 PCIe", r"\bH100 PCIe", arch="sm_90", units=114, mhz=1755, gib=80, tera_bytes=2.0, llc_mib=50,
          source="NV1", tera_flops=_HOPPER_PCIE, tera_narrow=_HOPPER_PCIE_NARROW),
    _part("H100 SXM", r"\bH100(?! (?:NVL|PCIe))", arch="sm_90", units=132, mhz=1980, gib=80, tera_bytes=3.35,
          llc_mib=50, source="NV1", tera_flops=_HOPPER, tera_narrow=_HOPPER_NARROW),
)
# fmt: on

#: Infinity Cache of every part of an architecture (AMD1): HIP reports the L2 of one die only, 4 MiB.
ARCH_LLC = {"gfx942": 256 * MIB, "gfx950": 256 * MIB}

#: A name that says which model it is. In containers without the file of PCI names it is empty or "AMD Radeon Graphics".
_AMD_MODEL = re.compile(r"MI\d{2,3}", re.IGNORECASE)
MEMORY_TOLERANCE = 0.05
CLOCK_TOLERANCE = 0.02


def find_part(name: str) -> Part | None:
    """Return the part whose name occurs in the device's own name ("AMD Instinct MI300X", "NVIDIA H200")."""
    return next((part for part in PARTS if part.pattern.search(name)), None)


def identify(
    name: str, arch: str | None, compute_units: int | None, memory_bytes: int | None, clock_mhz: int | None
) -> Part | None:
    """Return the part by its name; an AMD GPU whose name says no model by its figures, if all fit exactly one part."""
    part = find_part(name)
    if part is not None or arch not in ARCH_LLC or _AMD_MODEL.search(name):
        return part
    if not (compute_units and memory_bytes and clock_mhz):
        return None
    fitting = [
        part
        for part in PARTS
        if part.arch == arch
        and part.compute_units == compute_units
        and abs(memory_bytes / part.memory - 1.0) <= MEMORY_TOLERANCE
        and abs(clock_mhz / part.clock_mhz - 1.0) <= CLOCK_TOLERANCE
    ]
    return fitting[0] if len(fitting) == 1 else None


def model_name(name: str, part: Part | None, arch: str | None) -> str:
    """Return the device's own name; where it says no model, that of the part found, else the architecture."""
    if part is not None and not part.pattern.search(name):
        return f"AMD Instinct {part.name}"  # only AMD's are found by figures
    return name or arch or "unnamed GPU"


def last_level_cache(part: Part | None, arch: str | None, reported: int) -> int | None:
    """Return the bytes of the largest cache before memory, by the runtime, the part and the architecture."""
    return max(reported, part.llc if part else 0, ARCH_LLC.get(arch or "", 0)) or None


def table_sources(part: Part | None, name: str, arch: str | None, reported: int) -> dict[str, str]:
    """Return the fields of `DeviceFacts` that come from these tables, with their sources.

    The arguments are those of the three functions above.
    """
    found = {}
    if part is not None:
        sheet = f"data sheet ({part.source})"
        found = {"bandwidth": sheet, "peak_flops": sheet}
        if not part.pattern.search(name):
            found["name"] = "the part that fits the figures"
    if (last_level_cache(part, arch, 0) or 0) > reported:
        found["llc_bytes"] = f"data sheet ({part.source if part else 'AMD1'})"
    return found


def flush_bytes(facts: DeviceFacts) -> int:
    """Return twice the last-level cache: a buffer of its size can leave lines behind (MI300X: 256 MiB)."""
    return 2 * (facts.llc_bytes or 128 * MIB)


def differences(part: Part, compute_units: int | None, memory_bytes: int | None) -> list[str]:
    """Return how a device falls short of the whole part: partitions and slices, with lower peaks than the part's."""
    found = []
    if compute_units and compute_units != part.compute_units:
        found.append(f"{compute_units} compute units, {part.name} has {part.compute_units}")
    if memory_bytes and abs(memory_bytes / part.memory - 1.0) > MEMORY_TOLERANCE:
        found.append(f"{memory_bytes / GIB:.0f} GiB, {part.name} has {part.memory / GIB:.0f}")
    return found
