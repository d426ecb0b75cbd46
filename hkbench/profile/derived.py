"""Figures that profilers' counters come to: pure functions with units, each with the source of its formula.

Counters are means of one call, seconds the time of one call. A figure whose counters a part lacks is left out.

Sources:
[defs]  ROCprofiler-SDK's counter_defs.yaml, the expressions for gfx942 and gfx950 (FETCH_SIZE, WRITE_SIZE, MfmaUtil,
        OccupancyPercent, LDSBankConflict, MfmaFlops)
[perf]  ROCm Compute Profiler, documentation, "System Speed-of-Light" and "Pipeline metrics" (FLOP counting conventions)
[ncu]   Nsight Compute, "Profiling Guide": metrics structure, roofline, occupancy, memory tables
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hkbench.records import DeviceFacts
from hkbench.records.metrics import (
    BANDWIDTH,
    BANDWIDTH_OF_PEAK,
    FLOPS,
    FLOPS_OF_PEAK,
    L2_HIT_RATE,
    LDS_CONFLICTS,
    LOAD_WIDTH,
    LOCAL_TRAFFIC,
    MATRIX_UNIT_USE,
    OCCUPANCY,
    OF_ROOF,
)
from hkbench.records.profile import Figure

Counters = Mapping[str, float]

WAVE = 64  #: lanes of a wave on gfx9
WAVES_PER_CU = 32  #: gfx942, gfx950: 8 a SIMD
SIMDS_PER_CU = 4
SECTOR = 32  #: bytes of a sector, the unit of NVIDIA's caches
WARP = 32
_FRACTION = "fraction"
#: By the dtype whose peak holds; where the device's facts have none under that name, no share of a peak is given.
_AMD_MATRIX = {
    "SQ_INSTS_VALU_MFMA_MOPS_BF16": "bfloat16",
    "SQ_INSTS_VALU_MFMA_MOPS_F16": "float16",
    "SQ_INSTS_VALU_MFMA_MOPS_F32": "float32",
    "SQ_INSTS_VALU_MFMA_MOPS_F64": "float64 matrix",  # twice the vector units' rate on CDNA 3, the same on CDNA 4
    "SQ_INSTS_VALU_MFMA_MOPS_F8": "float8",
    "SQ_INSTS_VALU_MFMA_MOPS_F6F4": "mxfloat6 or mxfloat4",
    "SQ_INSTS_VALU_MFMA_MOPS_XF32": "tfloat32",
}
_AMD_VECTOR = {"F16": "float32", "F32": "float32", "F64": "float64"}  # whose peak: the vector units' rate is the same
_NVIDIA_VECTOR = {"f": "float32", "h": "float32", "d": "float64"}
_NVIDIA_TENSOR = (
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
)
#: Matrix units this busy do operations that the counters of vector instructions do not see. Below, on NVIDIA, they
#: need not do any: a kernel without a product came to 0.015 on an H200, with as many half-precision FMA as elements,
#: by which its compiler had set constants.
TENSOR_AT_WORK = 0.03


@dataclass(frozen=True)
class Agent:
    """What a formula has to know of an AMD part, as the driver reports it (it depends on the partition mode)."""

    compute_units: int
    xcds: int


def amd_bytes(counters: Counters) -> float | None:
    """Return the bytes that a call reads and writes behind L2. [defs]: both counters are in units of 1024 bytes.

    Hits in the Infinity Cache count: the figure can be above what the memory delivers.
    """
    read, written = counters.get("FETCH_SIZE"), counters.get("WRITE_SIZE")
    return None if read is None or written is None else (read + written) * 1024


def amd_operations(counters: Counters) -> dict[str, float] | None:
    """Return floating-point operations a call, by the dtype of their peak; None unless all were counted.

    [perf]: an instruction of the vector unit is one operation a lane, a fused multiply-add two; [defs]: a MOPS
    counter is in units of 512 operations.
    """
    done: dict[str, float] = {}
    for dtype, peak in _AMD_VECTOR.items():
        for kind, weight in (("ADD", 1), ("MUL", 1), ("FMA", 2), ("TRANS", 1)):
            value = counters.get(f"SQ_INSTS_VALU_{kind}_{dtype}")
            if value is None:
                return None
            done[peak] = done.get(peak, 0.0) + WAVE * weight * value
    if not any(name in counters for name in _AMD_MATRIX):
        return None
    for name, dtype in _AMD_MATRIX.items():
        if name in counters:
            done[dtype] = done.get(dtype, 0.0) + 512 * counters[name]
    return done


def amd_cycles(counters: Counters, agent: Agent) -> float | None:
    """Return the cycles that the part was at work. [defs] takes the XCDs' largest; the CSV holds their sum."""
    total = counters.get("GRBM_GUI_ACTIVE")
    return total / agent.xcds if total else None


def amd_matrix_use(counters: Counters, agent: Agent) -> float | None:
    """Return the share of cycles with a busy matrix unit, mean over all SIMDs. [defs]: MfmaUtil."""
    return _over(
        counters.get("SQ_VALU_MFMA_BUSY_CYCLES"), amd_cycles(counters, agent), agent.compute_units * SIMDS_PER_CU
    )


def amd_occupancy(counters: Counters, agent: Agent) -> float | None:
    """Return the mean waves in flight, of 32 a compute unit.

    [defs]: OccupancyPercent. SQ_WAVE_CYCLES counts in fours.
    """
    waves = counters.get("SQ_WAVE_CYCLES")
    return _over(None if waves is None else 4 * waves, amd_cycles(counters, agent), agent.compute_units * WAVES_PER_CU)


def amd_lds_conflicts(counters: Counters) -> float | None:
    """Return the share of the LDS's working cycles (SQ_LDS_IDX_ACTIVE) that bank conflicts take: [defs], [perf]."""
    return _share(counters.get("SQ_LDS_BANK_CONFLICT"), counters.get("SQ_LDS_IDX_ACTIVE"))


def amd_l2_hit_rate(counters: Counters) -> float | None:
    """Return the share of all accesses to L2 that hit: [perf]."""
    hits, misses = counters.get("TCC_HIT_sum"), counters.get("TCC_MISS_sum")
    return None if hits is None or misses is None else _share(hits, hits + misses)


def amd_load_width(counters: Counters) -> float | None:
    """Return the bytes from behind L2 for each lane of an instruction that reads memory.

    For a kernel that reads each byte once this is the width of its loads. What is read again from a cache makes it
    smaller, so it says nothing of a kernel with reuse.
    """
    return _over((counters.get("FETCH_SIZE") or 0.0) * 1024 or None, counters.get("SQ_INSTS_VMEM_RD"), WAVE)


def amd_figures(
    counters: Counters, seconds: float | None, facts: DeviceFacts | None, agent: Agent | None
) -> dict[str, Figure]:
    """Return all figures that the counters of one kernel allow. `seconds`: of one call, from the trace."""
    found = _rates(amd_bytes(counters), amd_operations(counters), seconds, facts)
    found[L2_HIT_RATE] = _fraction(amd_l2_hit_rate(counters))
    found[LDS_CONFLICTS] = _fraction(amd_lds_conflicts(counters))
    found[LOAD_WIDTH] = _figure(amd_load_width(counters), "B")
    if agent is not None:
        found[MATRIX_UNIT_USE] = _fraction(amd_matrix_use(counters, agent))
        found[OCCUPANCY] = _fraction(amd_occupancy(counters, agent))
    return {name: figure for name, figure in found.items() if figure is not None}


def nvidia_bytes(counters: Counters) -> float | None:
    """Return the bytes a call moves between L2 and memory: [ncu]."""
    both = counters.get("dram__bytes.sum")
    read, written = counters.get("dram__bytes_read.sum"), counters.get("dram__bytes_write.sum")
    return both if read is None or written is None else read + written


def nvidia_operations(counters: Counters) -> dict[str, float] | None:
    """Return floating-point operations a call, by dtype.

    None where the tensor pipes worked: no common counter has theirs.

    [ncu], roofline: threads that executed an add or a multiplication, twice those of a fused multiply-add.
    """
    tensor = nvidia_matrix_use(counters)
    if tensor is None or tensor > TENSOR_AT_WORK:
        return None
    done: dict[str, float] = {}
    for letter, peak in _NVIDIA_VECTOR.items():
        for kind, weight in (("add", 1), ("mul", 1), ("fma", 2)):
            value = counters.get(f"smsp__sass_thread_inst_executed_op_{letter}{kind}_pred_on.sum")
            if value is None:
                return None
            done[peak] = done.get(peak, 0.0) + weight * value
    return done


def nvidia_matrix_use(counters: Counters) -> float | None:
    """Return the share of cycles with busy tensor pipes; the metric's name differs from part to part: [ncu]."""
    return next((counters[name] / 100 for name in _NVIDIA_TENSOR if name in counters), None)


def nvidia_lds_conflicts(counters: Counters) -> float | None:
    """Return the share of the shared memory's wavefronts that bank conflicts add: [ncu], memory tables."""
    conflicts = counters.get("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum")
    return _share(conflicts, counters.get("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"))


def nvidia_load_width(counters: Counters) -> float | None:
    """Return the bytes of sectors for each lane of a warp that reads global memory: [ncu].

    Coalesced loads of 4 bytes come to 4, of 16 bytes to 16; scattered ones to more than their width.
    """
    sectors = counters.get("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum")
    requests = counters.get("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum")
    return _over(None if not sectors else sectors * SECTOR, requests, WARP)


def nvidia_local_traffic(counters: Counters) -> float | None:
    """Return the bytes a call that spills and local arrays move to and from L1: [ncu]."""
    read = counters.get("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum")
    written = counters.get("l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum")
    return None if read is None or written is None else (read + written) * SECTOR


def nvidia_figures(counters: Counters, seconds: float | None, facts: DeviceFacts | None) -> dict[str, Figure]:
    """Return all figures that the metrics of one kernel allow. `seconds`: of one call."""
    found = _rates(nvidia_bytes(counters), nvidia_operations(counters), seconds, facts)
    found[L2_HIT_RATE] = _fraction(_percent(counters, "lts__t_sector_hit_rate.pct"))
    found[MATRIX_UNIT_USE] = _fraction(nvidia_matrix_use(counters))
    found[OCCUPANCY] = _fraction(_percent(counters, "sm__warps_active.avg.pct_of_peak_sustained_active"))
    found[LDS_CONFLICTS] = _fraction(nvidia_lds_conflicts(counters))
    found[LOAD_WIDTH] = _figure(nvidia_load_width(counters), "B")
    found[LOCAL_TRAFFIC] = _figure(nvidia_local_traffic(counters), "B")
    return {name: figure for name, figure in found.items() if figure is not None}


def operations_of_peak(operations: Mapping[str, float], seconds: float, peaks: Mapping[str, float]) -> float | None:
    """Return the share of time that operations take at their dtype's peak rate; None without a known peak."""
    needed = 0.0
    for dtype, count in operations.items():
        if count and not peaks.get(dtype):
            return None
        needed += count / peaks[dtype] if count else 0.0
    return needed / seconds


def _rates(
    moved: float | None, operations: Mapping[str, float] | None, seconds: float | None, facts: DeviceFacts | None
) -> dict[str, Figure | None]:
    if not seconds:
        return {}
    found: dict[str, Figure | None] = {
        BANDWIDTH: _figure(moved and moved / seconds, "B/s"),
        FLOPS: _figure(sum(operations.values()) / seconds if operations else None, "FLOP/s"),
    }
    if facts is None:
        return found
    of_bandwidth = moved / seconds / facts.bandwidth if moved and facts.bandwidth else None
    of_flops = operations_of_peak(operations, seconds, facts.peak_flops) if operations and facts.peak_flops else None
    found[BANDWIDTH_OF_PEAK] = _figure(of_bandwidth, _FRACTION)
    found[FLOPS_OF_PEAK] = _figure(of_flops, _FRACTION)
    if of_bandwidth is not None and of_flops is not None:
        # The roofline's attainable rate is min(peak, intensity * bandwidth): its share is the larger of the two.
        found[OF_ROOF] = _figure(max(of_bandwidth, of_flops), _FRACTION)
    return found


def _percent(counters: Counters, name: str) -> float | None:
    return counters[name] / 100 if name in counters else None


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _over(value: float | None, cycles: float | None, units: int) -> float | None:
    return value / (cycles * units) if value is not None and cycles and units else None


def _figure(value: float | None, unit: str) -> Figure | None:
    return None if value is None else Figure(value=value, unit=unit)


def _fraction(value: float | None) -> Figure | None:
    """Clip a share: counters of several runs do not fit each other exactly: a share may come out a little above 1."""
    return None if value is None else Figure(value=min(1.0, value), unit=_FRACTION)
