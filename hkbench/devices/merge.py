"""Put together what torch and AMD SMI say of the same GPU.

torch has what a verdict is measured by; AMD SMI alone knows clocks, the memory's bus and the Infinity Cache, and sees
GPUs that torch cannot use. Where they disagree the value of torch stands and the difference is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hkbench.devices.amd_smi import AMD_SMI
from hkbench.devices.peaks import Part, find_part, identify, last_level_cache, model_name, table_sources
from hkbench.devices.reading import GpuReading, SourceReport
from hkbench.records import DeviceFacts, DeviceKind

TORCH = "torch"
TOLERANCES = {"memory_bytes": 0.02, "clock_mhz": 0.02, "memory_clock_mhz": 0.02}
_FIELDS = tuple(field for field in GpuReading.model_fields if field != "index")


@dataclass(frozen=True)
class MergedGpu:
    """One GPU after all sources were asked."""

    facts: DeviceFacts
    reading: GpuReading  #: the value that stands, of every field
    part: Part | None
    sources: dict[str, str]  #: field of the reading -> who said it
    disagreements: tuple[str, ...]


def torch_reading(facts: DeviceFacts) -> GpuReading:
    """Return what torch reported. Its facts carry the part's cache too, which is not its to say."""
    return GpuReading(
        index=facts.index,
        name=facts.name,
        arch=facts.arch,
        compute_units=facts.compute_units,
        wave_size=facts.wave_size,
        lds_bytes=facts.lds_bytes,
        memory_bytes=facts.memory_bytes,
    )


def alone(facts: DeviceFacts) -> MergedGpu:
    """Return a GPU of which torch is the only source: NVIDIA's."""
    reading = torch_reading(facts)
    said = {field: TORCH for field in _FIELDS if getattr(reading, field) is not None}
    return MergedGpu(facts, reading, find_part(facts.name), said, ())


def merge(torch_facts: Sequence[DeviceFacts], smi: SourceReport) -> tuple[MergedGpu, ...]:
    """Return one entry for each GPU that torch sees, or else that AMD SMI sees.

    Both are matched by PCI address; where torch does not know it, by their place, if both see as many: AMD SMI also
    sees the GPUs that `HIP_VISIBLE_DEVICES` hides.
    """
    if not torch_facts:
        return tuple(_merged(gpu.index, [(AMD_SMI, gpu)], None) for gpu in smi.gpus)
    merged = []
    for place, facts in enumerate(sorted(torch_facts, key=lambda facts: facts.index)):
        readings = [(TORCH, torch_reading(facts))]
        if facts.pci is not None:
            readings += [(AMD_SMI, gpu) for gpu in smi.gpus if gpu.pci == facts.pci][:1]
        elif len(smi.gpus) == len(torch_facts):
            readings.append((AMD_SMI, smi.gpus[place]))
        merged.append(_merged(facts.index, readings, facts))
    return tuple(merged)


def _merged(index: int, readings: list[tuple[str, GpuReading]], known: DeviceFacts | None) -> MergedGpu:
    values: dict[str, object] = {}
    sources: dict[str, str] = {}
    disagreements = []
    for field in _FIELDS:
        said = [(source, value) for source, one in readings if (value := getattr(one, field)) not in (None, "")]
        if field == "name":  # one that names a model comes before "AMD Radeon Graphics"
            said.sort(key=lambda pair: find_part(str(pair[1])) is None)
        if not said:
            continue
        sources[field], values[field] = said[0]
        # Names differ by marketing, not by fact; one that names another part is a difference.
        equal = _equal_names if field == "name" else _equal(TOLERANCES.get(field, 0.0))
        if any(not equal(said[0][1], value) for _, value in said[1:]):
            disagreements.append(f"{field}: " + ", ".join(f"{source} says {value}" for source, value in said))
    reading = GpuReading.model_validate({"index": index, **values})
    part = identify(reading.name or "", reading.arch, reading.compute_units, reading.memory_bytes, reading.clock_mhz)
    facts = _facts(reading, part, known, sources)
    return MergedGpu(facts, reading, part, sources, tuple(disagreements))


def _equal(tolerance: float) -> Callable[[object, object], bool]:
    def close(one: object, other: object) -> bool:
        if isinstance(one, int) and isinstance(other, int):
            return abs(one - other) <= tolerance * max(one, other)
        return one == other

    return close


def _equal_names(one: object, other: object) -> bool:
    parts = find_part(str(one)), find_part(str(other))
    return parts[0] is parts[1] or None in parts


def _facts(reading: GpuReading, part: Part | None, known: DeviceFacts | None, sources: dict[str, str]) -> DeviceFacts:
    reported = max(reading.l2_bytes or 0, reading.l3_bytes or 0, (known.llc_bytes or 0) if known else 0)
    return DeviceFacts(
        kind=DeviceKind.ROCM,
        index=reading.index,
        name=model_name(reading.name or "", part, reading.arch),
        uuid=known.uuid if known else None,
        pci=reading.pci or (known.pci if known else None),
        arch=reading.arch,
        memory_bytes=reading.memory_bytes,
        compute_units=reading.compute_units,
        wave_size=reading.wave_size,
        lds_bytes=reading.lds_bytes,
        llc_bytes=last_level_cache(part, reading.arch, reported),
        bandwidth=part.bandwidth if part else None,
        peak_flops=part.flops if part else {},
        versions=known.versions if known else {},
        sources=_fact_sources(reading, part, known, sources, reported),
    )


def _fact_sources(
    reading: GpuReading, part: Part | None, known: DeviceFacts | None, said: dict[str, str], reported: int
) -> dict[str, str]:
    """Return field of `DeviceFacts` -> its source."""
    found = {field: source for field, source in said.items() if field in DeviceFacts.model_fields}
    by_field = {"l2_bytes": reading.l2_bytes, "l3_bytes": reading.l3_bytes}
    largest = next((said[field] for field, size in by_field.items() if size and size == reported), None)
    if reported:
        found["llc_bytes"] = largest or (known.sources.get("llc_bytes", TORCH) if known else TORCH)
    return found | table_sources(part, reading.name or "", reading.arch, reported)
