"""What one source says of one GPU."""

from __future__ import annotations

from hkbench.records.base import Record


class GpuReading(Record):
    """Bytes, MHz, bits; `None` where the source does not say."""

    index: int
    name: str | None = None
    arch: str | None = None  #: "gfx942", without features
    compute_units: int | None = None
    wave_size: int | None = None
    lds_bytes: int | None = None  #: of a compute unit
    memory_bytes: int | None = None
    clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    bus_bits: int | None = None
    l2_bytes: int | None = None
    l3_bytes: int | None = None  #: Infinity Cache
    pci: str | None = None  #: "0000:1b:00", domain, bus and device


class SourceReport(Record):
    """One source's answer: GPUs, or why there are none."""

    source: str
    error: str | None = None
    gpus: tuple[GpuReading, ...] = ()
