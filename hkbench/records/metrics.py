"""Names and units of what profilers count: what is asked of them, what a prompt may show.

Counters bear the profilers' own names; figures are derived from them (hkbench/profile/derived.py).
"""

from __future__ import annotations

from collections.abc import Mapping

# Names of the figures.
BANDWIDTH = "bandwidth"  #: B/s between the last-level cache that the counter sees and what lies behind it
FLOPS = "flops"  #: FLOP/s, vector and matrix units together
BANDWIDTH_OF_PEAK = "bandwidth of peak"
FLOPS_OF_PEAK = "flops of peak"
OF_ROOF = "of roof"  #: the larger of the two: how near the roofline the kernel is
L2_HIT_RATE = "L2 hit rate"
MATRIX_UNIT_USE = "matrix unit use"
OCCUPANCY = "occupancy"  #: resident waves (warps) of those that fit, mean over time
LDS_CONFLICTS = "LDS bank conflicts"  #: cycles lost of those that the LDS (shared memory) works
LOAD_WIDTH = "load width"  #: B that a lane gets from an instruction that reads memory, at most
LOCAL_TRAFFIC = "local memory traffic"  #: B a call, NVIDIA: spills and local arrays

#: Figures that both makers' counters give.
COUNTED = (
    BANDWIDTH, FLOPS, BANDWIDTH_OF_PEAK, FLOPS_OF_PEAK, OF_ROOF, L2_HIT_RATE, MATRIX_UNIT_USE, OCCUPANCY,
    LDS_CONFLICTS, LOAD_WIDTH,
)  # fmt: skip

#: Those that derived.py takes, and the number of waves. [defs] of derived.py has the units.
AMD_WORK: Mapping[str, str] = {
    "GRBM_GUI_ACTIVE": "cycles, summed over XCDs",
    "SQ_WAVES": "waves",
    "SQ_WAVE_CYCLES": "x 4 wave cycles",
    "SQ_VALU_MFMA_BUSY_CYCLES": "cycles, summed over SIMDs",
    "SQ_INSTS_VMEM_RD": "wave instructions",
    "SQ_LDS_BANK_CONFLICT": "cycles, summed over CUs",
    "SQ_LDS_IDX_ACTIVE": "cycles, summed over CUs",
    "TCC_HIT_sum": "requests",
    "TCC_MISS_sum": "requests",
    "WRITE_SIZE": "KiB",
    "FETCH_SIZE": "KiB",
}
AMD_MATRIX: Mapping[str, str] = {
    f"SQ_INSTS_VALU_MFMA_MOPS_{dtype}": "x 512 FLOP" for dtype in ("BF16", "F16", "F32", "F64", "F8", "F6F4")
}
AMD_VECTOR: Mapping[str, str] = {
    f"SQ_INSTS_VALU_{kind}_{dtype}": "wave instructions"
    for dtype in ("F32", "F16", "F64")
    for kind in ("ADD", "MUL", "FMA", "TRANS")
}
NVIDIA: Mapping[str, str] = {
    "gpu__time_duration.sum": "s",
    "dram__bytes_read.sum": "B",
    "dram__bytes_write.sum": "B",
    "lts__t_sector_hit_rate.pct": "%",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "%",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": "wavefronts",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": "wavefronts",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "sectors",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": "requests",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": "sectors",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": "sectors",
    **{
        f"smsp__sass_thread_inst_executed_op_{letter}{kind}_pred_on.sum": "thread instructions"
        for letter in "fhd"
        for kind in ("add", "mul", "fma")
    },
}
#: The tensor pipes' metric from sm_90 on, and before.
NVIDIA_TENSOR: Mapping[str, str] = {
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": "%",
    "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active": "%",
}
# What stands in `KernelUse` itself, by the name that a prompt gives it.
TIME_SHARE = "time share"
TIME = "time"
CALLS = "calls"
BLOCKS = "blocks"
REGISTERS = "registers"
VGPRS = "VGPRs"
AGPRS = "AGPRs"
LDS = "LDS"
SCRATCH = "scratch"
TIMES = (TIME_SHARE, TIME, CALLS)
