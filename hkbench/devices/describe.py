"""What is known of a GPU, as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator

from hkbench.devices.merge import MergedGpu
from hkbench.devices.peaks import GIB, MIB, TERA, differences, flush_bytes
from hkbench.devices.reading import GpuReading

KIB = 1 << 10


def gpu_lines(gpu: MergedGpu) -> Iterator[str]:
    """Yield the head line, then figures, peaks, the source of each, and what does not fit."""
    facts = gpu.facts
    yield f"{facts.kind} {facts.index}: {facts.name}" + (f", {facts.arch}" if facts.arch else "")
    yield "memory   " + ", ".join(_memory(gpu))
    yield "units    " + (", ".join(_units(gpu.reading)) or "not known")
    yield "peaks    " + _peaks(gpu)
    yield "sources  " + "; ".join(_sources(gpu))
    for line in gpu.disagreements:
        yield f"warning  sources disagree on {line}"
    if gpu.part is not None:
        for line in differences(gpu.part, facts.compute_units, facts.memory_bytes):
            yield f"warning  {line}: a partition or a slice, the peaks are the whole part's"


def _memory(gpu: MergedGpu) -> Iterator[str]:
    facts, reading = gpu.facts, gpu.reading
    yield f"{facts.memory_bytes / GIB:.1f} GiB" if facts.memory_bytes else "size not known"
    if reading.bus_bits and reading.memory_clock_mhz:
        yield f"{reading.bus_bits} bits at {reading.memory_clock_mhz} MHz"
    if facts.llc_bytes:
        yield f"last-level cache {facts.llc_bytes // MIB} MiB"
    yield f"flushed by {flush_bytes(facts) // MIB} MiB before each timed call"


def _units(reading: GpuReading) -> Iterator[str]:
    if reading.compute_units:
        yield f"{reading.compute_units} compute units"
    if reading.wave_size:
        yield f"waves of {reading.wave_size}"
    if reading.lds_bytes:
        yield f"{reading.lds_bytes // KIB} KiB LDS or shared memory each"
    if reading.clock_mhz:
        yield f"up to {reading.clock_mhz} MHz"
    if reading.pci:
        yield f"PCI {reading.pci}"


def _peaks(gpu: MergedGpu) -> str:
    part = gpu.part
    if part is None:
        return "not known: no floor is held against verdicts, and prompts name no rates"
    rates = ", ".join(f"{dtype} {rate / TERA:.4g}" for dtype, rate in part.rates.items())
    return f"{part.name} ({part.source}): {part.bandwidth / TERA:.3g} TB/s; dense TFLOP/s: {rates}"


def _sources(gpu: MergedGpu) -> Iterator[str]:
    """Yield each source with its fields, in the order of the reading."""
    by_source: dict[str, list[str]] = {}
    for field, source in gpu.sources.items():
        by_source.setdefault(source, []).append(field)
    for source, fields in by_source.items():
        yield f"{source}: {', '.join(fields)}"
    yield "data sheet: peaks" if gpu.part else "nobody: peaks"
