"""What keeps a kernel from being faster, as one class: what moves are counted by."""

from __future__ import annotations

from enum import StrEnum

from hkbench.records import KernelUse, Owner, Verdict, metrics

MEMORY_SHARE = 0.6  #: of the memory's peak rate; measured copies reach some 0.8 of a data sheet
COMPUTE_SHARE = 0.4  #: of the peak rate of operations, or of the matrix units' cycles
CONFLICT_SHARE = 0.2  #: of the shared memory's cycles
MANY_LAUNCHES = 4  #: kernels of one pass
OWN_SHARE = 0.5  #: of the profiled time that the candidate's kernels take
NEAR_FLOOR = 0.5  #: of the device's least time, from which the floor's bound is the kernel's


class Bottleneck(StrEnum):
    """Members stand in the order in which they are looked for."""

    FOREIGN = "foreign"  #: others' kernels take most of the time
    SPILLS = "spills"  #: registers are spilt to memory
    LAUNCHES = "launches"  #: the pass is many kernels
    MEMORY = "memory"
    COMPUTE = "compute"
    CONFLICTS = "conflicts"  #: in shared memory (LDS)
    LATENCY = "latency"  #: counted, and near none of the limits
    UNKNOWN = "unknown"  #: no profiler counted, and it is not near the least time of its device


def bottleneck_of(verdict: Verdict) -> Bottleneck:
    """Return the class of a correct kernel: by its profile's longest own kernel, else by the floor of its device."""
    if any(kernel.scratch_bytes_per_lane or kernel.vgpr_spills for kernel in verdict.resources):
        return Bottleneck.SPILLS
    profile = verdict.profile
    if profile is None or not profile.kernels:
        return _by_floor(verdict)
    own = [use for use in profile.kernels if use.owner in (Owner.CANDIDATE, Owner.UNKNOWN)]
    if sum(use.share for use in own) < OWN_SHARE:
        return Bottleneck.FOREIGN
    longest = max(own, key=lambda use: use.share)
    if longest.scratch_bytes or _figure(longest, metrics.LOCAL_TRAFFIC):
        return Bottleneck.SPILLS
    if sum(use.calls for use in profile.kernels) >= MANY_LAUNCHES:
        return Bottleneck.LAUNCHES
    return _by_figures(longest) if longest.figures else _by_floor(verdict)


def _by_figures(use: KernelUse) -> Bottleneck:
    if _figure(use, metrics.BANDWIDTH_OF_PEAK) >= MEMORY_SHARE:
        return Bottleneck.MEMORY
    if max(_figure(use, metrics.FLOPS_OF_PEAK), _figure(use, metrics.MATRIX_UNIT_USE)) >= COMPUTE_SHARE:
        return Bottleneck.COMPUTE
    return Bottleneck.CONFLICTS if _figure(use, metrics.LDS_CONFLICTS) >= CONFLICT_SHARE else Bottleneck.LATENCY


def _by_floor(verdict: Verdict) -> Bottleneck:
    sol = verdict.sol
    if sol is None or verdict.floor is None or sol.fraction < NEAR_FLOOR:
        return Bottleneck.UNKNOWN
    return Bottleneck.MEMORY if verdict.floor.bound == "bytes" else Bottleneck.COMPUTE


def _figure(use: KernelUse, name: str) -> float:
    figure = use.figures.get(name)
    return 0.0 if figure is None else figure.value
