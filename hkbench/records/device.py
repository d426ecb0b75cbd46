"""What is known of the device that measures."""

from __future__ import annotations

from hkbench.records.base import DeviceKind, Record


class DeviceFacts(Record):
    """One device. Bytes, bytes/s and FLOP/s; `None` where nothing says."""

    kind: DeviceKind
    index: int
    name: str
    uuid: str | None = None  #: of a GPU, as the driver's tools print it: "GPU-..."
    pci: str | None = None  #: "0000:1b:00", domain, bus and device
    arch: str | None = None  #: "gfx942", "sm_90"
    memory_bytes: int | None = None
    compute_units: int | None = None
    wave_size: int | None = None
    lds_bytes: int | None = None
    llc_bytes: int | None = None  #: the largest cache before memory, Infinity Cache included
    bandwidth: float | None = None
    peak_flops: dict[str, float] = {}  #: by dtype, dense
    versions: dict[str, str] = {}
    sources: dict[str, str] = {}  #: field -> who said it: "torch", "AMD SMI", "data sheet (AMD1, AMD2)"
