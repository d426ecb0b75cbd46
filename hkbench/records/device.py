"""What is known of the device that measures."""

from __future__ import annotations

from hkbench.records.base import DeviceKind, Record


class ClockState(Record):
    """One moment of what decides how fast a device is. `None` where its driver does not say."""

    clock_mhz: float | None = None  #: of the compute units
    memory_clock_mhz: float | None = None
    power_watts: float | None = None
    temperature: float | None = None  #: degrees Celsius
    throttled: tuple[str, ...] | None = None  #: for what its clock is held down
    energy_joules: float | None = None  #: a counter that only grows


class Readback(Record):
    """What the driver said before, during and after a measurement."""

    before: ClockState
    during: tuple[ClockState, ...]  #: between pairs of calls, the first ones warm-ups excluded
    after: ClockState
    joules_per_pair: float | None = None  #: of a call of each side, with their inputs and flushes


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


class NodeFacts(Record):
    """One node of a cluster, before anything is measured there."""

    name: str  #: in the cluster
    host: str  #: as it calls itself
    kind: DeviceKind  #: of the devices that its torch measures on
    cards: int
    cores: int
    decisive: dict[str, str]  #: what has to be the same on all nodes: "hkbench", "torch", "python"
    tools: dict[str, str] = {}  #: what a verdict may depend on, too: kernel, driver, compilers
