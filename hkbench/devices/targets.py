"""A GPU that is compiled for and is not there: what tables say of the part that stands for its architecture.

Of architectures without a part in the tables only this is known: waves of 32 lanes, as clang compiles for them, and the
LDS that a workgroup may declare, which is what clang 22 accepts.
"""

from __future__ import annotations

from hkbench.cdna import LDS_BYTES, WAVE
from hkbench.devices.peaks import PARTS, last_level_cache
from hkbench.records import DeviceFacts, DeviceKind

CHOSEN = "chosen for the architecture"
ARCHITECTURE = "the architecture"
_WAVE = 32  #: lanes
_LDS_BYTES = dict.fromkeys(("gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201"), 64 << 10) | {"gfx1250": 320 << 10}


def target_facts(arch: str, versions: dict[str, str]) -> DeviceFacts:
    """Return the first part of `arch` in the tables: MI300X for gfx942, MI355X for gfx950.

    Others of the architecture differ in memory, bandwidth and clock, which compiled code does not depend on.
    """
    part = next((part for part in PARTS if part.arch == arch), None)
    if part is None:
        return DeviceFacts(
            kind=DeviceKind.ROCM,
            index=0,
            name=f"a GPU of {arch}",
            arch=arch,
            wave_size=_WAVE,
            lds_bytes=_LDS_BYTES.get(arch),
            versions=versions,
            sources=dict.fromkeys(("wave_size", "lds_bytes"), ARCHITECTURE),
        )
    sheet = f"data sheet ({part.source})"
    from_sheet = ("memory_bytes", "compute_units", "llc_bytes", "bandwidth", "peak_flops")
    return DeviceFacts(
        kind=DeviceKind.ROCM,
        index=0,
        name=f"AMD Instinct {part.name}",
        arch=arch,
        memory_bytes=part.memory,
        compute_units=part.compute_units,
        wave_size=WAVE,
        lds_bytes=LDS_BYTES[arch],
        llc_bytes=last_level_cache(part, arch, 0),
        bandwidth=part.bandwidth,
        peak_flops=part.flops,
        versions=versions,
        sources={"name": CHOSEN, "wave_size": ARCHITECTURE, "lds_bytes": ARCHITECTURE}
        | dict.fromkeys(from_sheet, sheet),
    )
