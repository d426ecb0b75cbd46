"""How many waves of a kernel fit on a SIMD of gfx942 and gfx950, and what keeps more of them away.

By the rules of hkbench/cdna.py (tests hold each that the compiler's Occupancy remark knows against release 22) and:

- Workgroups are whole: their waves start together on one compute unit, so a compute unit holds a whole number of them.
- A kernel's own `amdgpu_waves_per_eu` caps the waves.

Two things make this figure lower than the compiler's own Occupancy remark: the compiler leaves out the blocks of LDS
(a note in its source says so) and does not ask for whole workgroups. The figure holds for a launch with the largest
workgroup that the kernel was compiled for: the metadata says no other size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hkbench.cdna import (
    LDS_BLOCK,
    LDS_BYTES,
    MAX_WAVES,
    SGPRS_FOR_ALL_WAVES,
    SIMDS,
    VGPR_BLOCK,
    VGPRS,
    WAVE,
    allocated,
    waves_by_registers,
    waves_by_sgprs,
    workgroups_by_lds,
)
from hkbench.records import KernelResources

DEFAULT_WORKGROUP = 1024  #: threads; what clang assumes of a kernel without __launch_bounds__
_SMALLER_WORKGROUPS = (512, 256, 128)  # threads

REGISTERS, SGPRS, LDS, WORKGROUP = "VGPRs", "SGPRs", "LDS", "the workgroup size"
ATTRIBUTE = "amdgpu_waves_per_eu"


@dataclass(frozen=True)
class Demand:
    """What one launch of a kernel asks for."""

    arch: str
    registers: int  #: VGPRs and AGPRs a lane, as they are allocated
    sgprs: int
    lds: int  #: bytes a workgroup
    threads: int  #: a workgroup
    agprs: bool = False  #: whether `registers` has AGPRs in it
    cap: int = MAX_WAVES  #: waves a SIMD, by what the source says

    @property
    def workgroup_waves(self) -> int:
        return -(-self.threads // WAVE)


@dataclass(frozen=True)
class Occupancy:
    """Waves a SIMD of a launch with the largest workgroup; what holds it down, and what would raise it."""

    waves: int
    limited_by: tuple[str, ...]  #: each of these alone would give more; where none does, all that are at their end
    next_step: str | None
    lds_budget: int  #: bytes a workgroup that leave room for `waves`


def registers_of(kernel: KernelResources) -> int | None:
    """Return VGPRs and AGPRs a lane in one count, before rounding to blocks; None if the compiler is silent."""
    if kernel.vgprs is None:
        return None
    return allocated(kernel.vgprs, kernel.agprs or 0)


def occupancy(kernel: KernelResources) -> Occupancy | None:
    """Return the occupancy by the rules above; None if the compiler said too little or for other architectures.

    LDS that a launch asks for on top (`extern __shared__`) is not known here and not counted.
    """
    demand = _demand(kernel)
    if demand is None:
        return None
    said = kernel.occupancy_waves_per_simd
    if said is not None and said < waves_by_compiler(demand):
        demand = replace(demand, cap=said)
    waves = waves_per_simd(demand)
    limited_by = _limited_by(demand, waves)
    return Occupancy(waves, limited_by, _next_step(demand, waves, limited_by), _lds_budget(demand, waves))


def remark(kernel: KernelResources, registers: int) -> int | None:
    """Return what the compiler's Occupancy remark would say of a kernel whose descriptor asks for so many `registers`.

    For code objects that come without it. None where `occupancy` is None too.
    """
    demand = _demand(kernel)
    return None if demand is None else min(waves_by_compiler(demand), waves_by_registers(registers))


def _demand(kernel: KernelResources) -> Demand | None:
    registers = registers_of(kernel)
    if kernel.arch not in LDS_BYTES or registers is None or kernel.max_workgroup_size is None:
        return None
    sgprs, lds, threads = kernel.sgprs or 0, kernel.lds_bytes or 0, kernel.max_workgroup_size
    return Demand(kernel.arch, registers, sgprs, lds, threads, bool(kernel.agprs))


def waves_per_simd(demand: Demand) -> int:
    """Return the waves on the fullest SIMD when a compute unit holds all workgroups that fit; 0 if none fits."""
    slots = min(demand.cap, waves_by_registers(demand.registers), waves_by_sgprs(demand.sgprs)) * SIMDS
    workgroups = min(slots // demand.workgroup_waves, workgroups_by_lds(demand.arch, demand.lds, slots))
    return -(-workgroups * demand.workgroup_waves // SIMDS)


def waves_by_compiler(demand: Demand) -> int:
    """Return what the compiler's Occupancy remark says: without blocks of LDS and whole workgroups.

    Where the remark is lower still, the source set a cap by `amdgpu_waves_per_eu`: the compiler then writes a larger
    number of VGPRs into the kernel's descriptor than the remark and the metadata show.
    """
    waves = min(waves_by_registers(demand.registers), waves_by_sgprs(demand.sgprs))
    if not demand.lds:
        return waves
    workgroups = LDS_BYTES[demand.arch] // demand.lds
    return min(waves, max(1, -(-workgroups * demand.workgroup_waves // SIMDS)))


def _limited_by(demand: Demand, waves: int) -> tuple[str, ...]:
    if waves >= MAX_WAVES:
        return ()
    slots = min(demand.cap, waves_by_registers(demand.registers), waves_by_sgprs(demand.sgprs))
    groups = workgroups_by_lds(demand.arch, demand.lds, SIMDS * MAX_WAVES)
    by_lds = min(MAX_WAVES, -(-groups * demand.workgroup_waves // SIMDS))
    without = {
        REGISTERS: waves_per_simd(replace(demand, registers=0)),
        SGPRS: waves_per_simd(replace(demand, sgprs=0)),
        LDS: waves_per_simd(replace(demand, lds=0)),
        ATTRIBUTE: waves_per_simd(replace(demand, cap=MAX_WAVES)),
        WORKGROUP: min(slots, by_lds),  # as if a part of a workgroup could run
    }
    alone = tuple(what for what, would_be in without.items() if would_be > waves)
    ends = {REGISTERS: waves_by_registers(demand.registers), SGPRS: waves_by_sgprs(demand.sgprs), LDS: by_lds}
    ends[ATTRIBUTE] = demand.cap
    return alone or tuple(what for what, end in ends.items() if end <= waves)


def _next_step(demand: Demand, waves: int, limited_by: tuple[str, ...]) -> str | None:
    """Return the smallest change of one thing that gives more waves, for the first of `limited_by` that has one."""
    for what in limited_by:
        for changed, said in _changes(demand, what):
            would_be = waves_per_simd(changed)
            if would_be > waves:
                return f"{said} would give {would_be} wave{'s' if would_be > 1 else ''} a SIMD"
    return None


def _changes(demand: Demand, what: str) -> Iterator[tuple[Demand, str]]:
    """Yield ever larger changes of one thing, each with the words for it."""
    capacity, block = LDS_BYTES[demand.arch], LDS_BLOCK[demand.arch]
    if what == REGISTERS:
        for waves in range(waves_by_registers(demand.registers) + 1, MAX_WAVES + 1):
            fewer = VGPRS // waves // VGPR_BLOCK * VGPR_BLOCK
            which = "VGPRs and AGPRs together" if demand.agprs else "VGPRs"
            yield replace(demand, registers=fewer), f"{fewer} {which} or fewer"
    elif what == SGPRS:
        fewer = SGPRS_FOR_ALL_WAVES
        yield replace(demand, sgprs=fewer), f"{fewer} SGPRs or fewer"
    elif what == LDS:
        most = SIMDS * MAX_WAVES
        for workgroups in range(workgroups_by_lds(demand.arch, demand.lds, most) + 1, most + 1):
            fewer = capacity // workgroups // block * block
            yield replace(demand, lds=fewer), f"{fewer} bytes of LDS a workgroup or fewer"
    elif what == ATTRIBUTE:
        yield replace(demand, cap=MAX_WAVES), "leaving it out"
    elif demand.lds == 0:  # with LDS, a smaller workgroup asks for another amount
        for threads in _SMALLER_WORKGROUPS:
            if threads < demand.threads:
                yield replace(demand, threads=threads), f"workgroups of {threads} threads"


def _lds_budget(demand: Demand, waves: int) -> int:
    """Return the most LDS a workgroup may have, in whole blocks, for `waves` waves a SIMD."""
    capacity, block = LDS_BYTES[demand.arch], LDS_BLOCK[demand.arch]
    workgroups = max(1, waves * SIMDS // demand.workgroup_waves)
    return capacity // workgroups // block * block
