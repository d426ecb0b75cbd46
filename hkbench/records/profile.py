"""What a profiler saw of one forward pass."""

from __future__ import annotations

from enum import StrEnum

from hkbench.records.base import Record


class Owner(StrEnum):
    """Whose code a kernel is."""

    CANDIDATE = "candidate"
    PYTORCH = "pytorch"
    LIBRARY = "library"
    UNKNOWN = "unknown"


class KernelUse(Record):
    """One kernel (or, on a CPU, one operator): calls and time per forward pass, share of the pass."""

    name: str
    owner: Owner
    calls: int
    seconds: float
    share: float  #: of the profiled time, 0..1


class KernelProfile(Record):
    """Kernels of one forward pass, longest first."""

    source: str  #: the profiler: "torch.profiler (CPU)", "torch.profiler (CUPTI)"
    kernels: tuple[KernelUse, ...]
    seconds: float  #: profiled time of the pass
    findings: tuple[str, ...] = ()  #: what a prompt may say about it, most important first


class KernelResources(Record):
    """What the compiler reports of one kernel. Bytes and register counts; `None` where it does not say."""

    name: str
    arch: str
    vgprs: int | None = None
    agprs: int | None = None
    sgprs: int | None = None
    lds_bytes: int | None = None
    scratch_bytes_per_lane: int | None = None
    vgpr_spills: int | None = None
    sgpr_spills: int | None = None
    occupancy_waves_per_simd: int | None = None
