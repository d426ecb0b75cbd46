"""NVIDIA's GPUs."""

from dataclasses import replace

from hkbench.device_kinds.base import CallLimits, DeviceModel, Profiler
from hkbench.protocol.constants import HOLD_SECONDS
from hkbench.records import DeviceKind, SizeSet
from hkbench.records.metrics import BLOCKS, COUNTED, LDS, LOCAL_TRAFFIC, NVIDIA, NVIDIA_TENSOR, REGISTERS, TIMES

#: Who waits long for a GPU goes on later: 0.28 ms after 52 ms on an H200.
GPU_LIMITS = CallLimits(absolute=8e-5, after_call=0.0, held=HOLD_SECONDS, reported_share=0.01, trace_slack=1e-3)
#: Of 287 verdicts on published kernels on H100s no trace says more than 2.9 us, or 25 % of 10 us, beyond what was
#: measured, and of calls below 0.1 ms none less by more than 7.2 us of 54.
CUDA_LIMITS = replace(GPU_LIMITS, busy_ratio=1.1, busy_slack=5e-6, queued_slack=6e-6)
#: Of 21 verdicts on equals on an H100, where each process has inputs and outputs at other physical addresses, the
#: speed-up was 0.30 % from 1 (root of the mean square); on some problems the same way each time.
GPU_PROCESS_VARIATION = 0.006
#: Seconds. Of 84 verdicts on 30 pairs of kernels of 1 to 140 us on H100s, in new processes each, the candidate's median
#: less the baseline's was 0.82 us from its mean (root of the mean square); of the two each has its part.
GPU_RESOLUTION = 1.1e-6


def build_targets(arch: str) -> dict[str, str]:
    """Have torch build for one architecture, such as `sm_90`, only."""
    major, minor = arch.removeprefix("sm_")[:-1], arch[-1]
    return {"TORCH_CUDA_ARCH_LIST": f"{major}.{minor}"}


CUDA = DeviceModel(
    kind=DeviceKind.CUDA,
    label="NVIDIA GPU",
    phrase="an NVIDIA GPU",
    on_host=False,
    unit="multiprocessor",
    lanes="warp",
    local_memory="shared memory",
    clock="device events",
    limits=CUDA_LIMITS,
    default_runs=100,
    resolution=GPU_RESOLUTION,
    process_variation=GPU_PROCESS_VARIATION,
    default_sizes=SizeSet.FULL,
    profilers=(Profiler.NCU,),
    figures=(*COUNTED, LOCAL_TRAFFIC),
    launch_figures=(*TIMES, BLOCKS, LDS, REGISTERS),
    counters={**NVIDIA, **NVIDIA_TENSOR},
    gauge="hkbench.drivers.nvidia:Nvml",
    lists_devices="nvidia-smi",
    visible_devices="CUDA_VISIBLE_DEVICES",
    libraries_removable=True,
    states_clocks=True,
    build_targets=build_targets,
)
