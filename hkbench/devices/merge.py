"""Puts together what several sources say of the same GPU: hip-python before torch before rocminfo.

hip-python asks the runtime itself, torch has what a verdict is measured by, rocminfo alone knows the Infinity Cache.
Where they disagree the first one's value stands and the difference is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hkbench.devices.peaks import Part, find_part, identify, last_level_cache, model_name, table_sources
from hkbench.devices.reading import GpuReading, SourceReport
from hkbench.devices.sources import HIP_PYTHON, ROCMINFO
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
    """What torch said. Its facts carry the part's cache too, which is not its to say."""
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
    """A GPU of which torch is the only source: NVIDIA's."""
    reading = torch_reading(facts)
    said = {field: TORCH for field in _FIELDS if getattr(reading, field) is not None}
    return MergedGpu(facts, reading, find_part(facts.name), said, ())


def merge(torch_facts: Sequence[DeviceFacts], hip: SourceReport, hsa: SourceReport) -> tuple[MergedGpu, ...]:
    """One entry for each GPU that any source sees: torch's and HIP's by index, rocminfo's by PCI address.

    Without hip-python, rocminfo's GPUs are matched by their place, if it lists as many as torch; `HIP_VISIBLE_DEVICES`
    hides GPUs from HIP and torch only.
    """
    by_torch = {facts.index: facts for facts in torch_facts}
    by_hip = {gpu.index: gpu for gpu in hip.gpus}
    seen = by_torch or by_hip or {gpu.index: gpu for gpu in hsa.gpus}
    merged = []
    for index in sorted(seen):
        readings: list[tuple[str, GpuReading]] = []
        if index in by_hip:
            readings.append((HIP_PYTHON, by_hip[index]))
        if index in by_torch:
            readings.append((TORCH, torch_reading(by_torch[index])))
        other = _same(index, by_hip.get(index), hsa, len(seen))
        if other is not None:
            readings.append((ROCMINFO, other))
        merged.append(_merged(index, readings, by_torch.get(index)))
    return tuple(merged)


def _same(index: int, hip: GpuReading | None, hsa: SourceReport, count: int) -> GpuReading | None:
    if hip is not None and hip.pci is not None:
        return next((gpu for gpu in hsa.gpus if gpu.pci == hip.pci), None)
    return hsa.gpus[index] if len(hsa.gpus) == count else None


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
    """Field of `DeviceFacts` -> who said it."""
    found = {field: source for field, source in said.items() if field in DeviceFacts.model_fields}
    by_field = {"l2_bytes": reading.l2_bytes, "l3_bytes": reading.l3_bytes}
    largest = next((said[field] for field, size in by_field.items() if size and size == reported), None)
    if reported:
        found["llc_bytes"] = largest or (known.sources.get("llc_bytes", TORCH) if known else TORCH)
    return found | table_sources(part, reading.name or "", reading.arch, reported)
