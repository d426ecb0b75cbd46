"""What a kernel waits for, by its profile and by what the compiler says of it."""

from __future__ import annotations

from enum import StrEnum

from hkbench.records.metrics import BANDWIDTH_OF_PEAK, FLOPS_OF_PEAK, LDS_CONFLICTS, MATRIX_UNIT_USE
from hkbench.records.profile import KernelResources, KernelUse, Owner
from hkbench.records.verdict import Verdict

#: A unit that is this busy is what a kernel waits for: Nsight Compute's guide calls a kernel bound by a unit from 60 %
#: of its peak on, and latency bound where no unit comes to that.
BUSY = 0.6
MAX_CONFLICTS = 0.2  #: share of the LDS's working cycles
#: A transcendental instruction takes four times as long as another one of the vector unit (AMD, CDNA 3 ISA guide).
TRANSCENDENTAL_CYCLES = 4
SPECIAL_SHARE = 0.5  #: of the vector unit's time
_VECTOR = tuple(f"SQ_INSTS_VALU_{kind}_F32" for kind in ("ADD", "MUL", "FMA"))
_TRANSCENDENTAL = "SQ_INSTS_VALU_TRANS_F32"
_ATOMICS = ("global_atomic", "flat_atomic", "buffer_atomic", "lds_atomic")


class Bottleneck(StrEnum):
    """The classes by which moves are weighed."""

    COMPUTE = "compute"  #: arithmetic of vector or matrix units
    GMEM = "gmem"  #: the bandwidth of global memory
    SFU = "sfu"  #: exponentials and their like
    ATOMICS = "atomics"  #: additions by many at one place
    SMEM = "smem"  #: LDS or shared memory
    OVERLAP = "overlap"  #: no unit is busy: latency that is not hidden


def bottleneck_of(verdict: Verdict) -> Bottleneck | None:
    """Return what the longest of a candidate's kernels waits for.

    None where nothing counted it: a profiler without counters (torch's) gives times alone. Without a floor or counters
    a kernel's class is not guessed. Where only the floor of the device is known, its bound is taken, for a kernel that
    comes near to it.
    """
    resources = {one.name: one for one in verdict.resources}
    kernels = verdict.profile.kernels if verdict.profile is not None else ()
    own = (one for one in kernels if one.owner is Owner.CANDIDATE)
    kernel = max(own, key=lambda one: one.seconds, default=None)
    if kernel is not None:
        found = _by_counters(kernel, resources.get(kernel.name))
        if found is not None:
            return found
    sol = verdict.sol
    if verdict.floor is not None and sol is not None and sol.fraction >= BUSY:
        return Bottleneck.GMEM if verdict.floor.bound == "bytes" else Bottleneck.COMPUTE
    return None


def _by_counters(kernel: KernelUse, compiled: KernelResources | None) -> Bottleneck | None:
    figures = {name: figure.value for name, figure in kernel.figures.items()}
    if not figures.keys() & {BANDWIDTH_OF_PEAK, FLOPS_OF_PEAK, MATRIX_UNIT_USE}:
        return None
    if figures.get(LDS_CONFLICTS, 0.0) > MAX_CONFLICTS:
        return Bottleneck.SMEM
    if figures.get(BANDWIDTH_OF_PEAK, 0.0) >= BUSY:
        return Bottleneck.GMEM
    if _special_share(kernel) > SPECIAL_SHARE:
        return Bottleneck.SFU
    if max(figures.get(FLOPS_OF_PEAK, 0.0), figures.get(MATRIX_UNIT_USE, 0.0)) >= BUSY:
        return Bottleneck.COMPUTE
    if compiled is not None and any(compiled.instructions and compiled.instructions.get(name) for name in _ATOMICS):
        return Bottleneck.ATOMICS  # no unit is busy, and there are atomics to wait for
    return Bottleneck.OVERLAP


def _special_share(kernel: KernelUse) -> float:
    """Return the share of the vector unit's time that transcendental instructions take; 0 where none is counted."""
    special = TRANSCENDENTAL_CYCLES * kernel.counters.get(_TRANSCENDENTAL, 0.0)
    whole = special + sum(kernel.counters.get(name, 0.0) for name in _VECTOR)
    return special / whole if whole else 0.0
