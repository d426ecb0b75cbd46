"""What a profiler saw of one forward pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from hkbench.records.base import Record


class Owner(StrEnum):
    """Whose code a kernel is."""

    CANDIDATE = "candidate"
    PYTORCH = "pytorch"
    LIBRARY = "library"
    UNKNOWN = "unknown"


class Figure(Record):
    """A figure with its unit: "B/s", "FLOP/s", "B", "fraction" (0..1)."""

    value: float
    unit: str


class KernelUse(Record):
    """One kernel (or, on a CPU, one operator): calls and time per forward pass, share of the pass."""

    name: str
    owner: Owner
    calls: int
    seconds: float
    share: float  #: of the profiled time, 0..1
    grid: tuple[int, ...] | None = None  #: blocks in x, y, z; a single number where only their product is known
    block: tuple[int, ...] | None = None  #: threads of a block, likewise; `None` too where calls differ
    vgprs: int | None = None  #: AMD, a lane: architected vector registers
    agprs: int | None = None  #: AMD, a lane: accumulation registers
    sgprs: int | None = None  #: AMD, a wave
    registers: int | None = None  #: NVIDIA, a thread
    lds_bytes: int | None = None  #: LDS or shared memory of a block
    scratch_bytes: int | None = None  #: AMD, a lane: spills, local arrays and stack
    counters: dict[str, float] = {}  #: by the profiler's own names, mean of a call; one that a part lacks is not here
    figures: dict[str, Figure] = {}  #: derived from the counters; names and formulas in hkbench/profile/derived.py


class KernelProfile(Record):
    """Kernels of one forward pass, longest first."""

    source: str  #: the profiler: "torch.profiler (device kernels)", "rocprofv3 (kernel trace, 4 counter passes)"
    kernels: tuple[KernelUse, ...]
    seconds: float  #: profiled time of the pass
    findings: tuple[str, ...] = ()  #: what a prompt may say about it, most important first
    notes: tuple[str, ...] = ()  #: what the figures rest on or leave out


class KernelResources(Record):
    """What the compiler reports of one kernel, and what its code shows. Bytes and counts; `None` where it is not known.

    `occupancy_waves_per_simd` is the compiler's own remark. `whole_workgroup_waves_per_simd` is for a launch with
    `max_workgroup_size` threads (hkbench/toolchain/occupancy.py); `limited_by` and `next_step` explain that figure.
    """

    name: str
    arch: str
    vgprs: int | None = None
    agprs: int | None = None
    sgprs: int | None = None
    lds_bytes: int | None = None  #: static; what a launch asks for on top is not in it
    scratch_bytes_per_lane: int | None = None
    vgpr_spills: int | None = None
    sgpr_spills: int | None = None
    occupancy_waves_per_simd: int | None = None
    max_workgroup_size: int | None = None  #: threads that it was compiled for; a launch may use fewer
    dynamic_lds: bool | None = None  #: it uses LDS whose size only the launch says
    whole_workgroup_waves_per_simd: int | None = None  #: static LDS counted, dynamic LDS not
    lds_budget: int | None = None  #: bytes a workgroup, static and dynamic, that leave room for so many waves
    limited_by: tuple[str, ...] | None = None  #: by toolchain/occupancy.py; empty at 8 waves
    next_step: str | None = None  #: the smallest change that gives more waves
    instructions: dict[str, int] | None = None  #: class -> how often it stands in the code (not how often it runs)
    is_function: bool = False  #: a device function that was not inlined: only `instructions` is known of it
    findings: tuple[str, ...] = ()  #: what a person or a prompt should know, most important first


class IdleWait(Record):
    """A wait that a kernel's source has and that was of no use: nothing that it proved was touched in time."""

    kernel: str
    text: str  #: the instruction
    line: str  #: "FILE:LINE"

    def __str__(self) -> str:
        return (
            f"{self.text} of {self.line} proved nothing that was used before the next wait, in all that was executed: "
            "leave it out, or let it wait for less"
        )


@dataclass(frozen=True)
class RegisterUse:
    """What a candidate's kernels take for each lane, all added up: vector and accumulation registers, and scratch."""

    registers: int
    scratch_bytes: int

    @classmethod
    def of(cls, resources: Iterable[KernelResources]) -> RegisterUse:
        kernels = list(resources)
        return cls(
            sum((kernel.vgprs or 0) + (kernel.agprs or 0) for kernel in kernels),
            sum(kernel.scratch_bytes_per_lane or 0 for kernel in kernels),
        )

    def __str__(self) -> str:
        spilt = f", {self.scratch_bytes} bytes of scratch" if self.scratch_bytes else ""
        return f"{self.registers} registers{spilt}"
