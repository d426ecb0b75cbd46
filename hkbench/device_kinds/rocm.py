"""AMD's GPUs. Limits are those of NVIDIA's: nothing of AMD's GPUs was measured."""

from hkbench.device_kinds.base import DeviceModel, Profiler
from hkbench.device_kinds.cuda import GPU_LIMITS, GPU_PROCESS_VARIATION, GPU_RESOLUTION
from hkbench.records import DeviceKind, SizeSet
from hkbench.records.metrics import (
    AGPRS,
    AMD_MATRIX,
    AMD_VECTOR,
    AMD_WORK,
    BLOCKS,
    COUNTED,
    LDS,
    SCRATCH,
    TIMES,
    VGPRS,
)

ROCM = DeviceModel(
    kind=DeviceKind.ROCM,
    label="AMD GPU",
    phrase="an AMD GPU",
    on_host=False,
    unit="compute unit",
    lanes="wave",
    local_memory="LDS",
    clock="device events",
    limits=GPU_LIMITS,
    default_runs=100,
    resolution=GPU_RESOLUTION,
    process_variation=GPU_PROCESS_VARIATION,
    default_sizes=SizeSet.FULL,
    profilers=(Profiler.ROCPROFV3, Profiler.ROCPROFV2, Profiler.ROCPROF),
    figures=COUNTED,
    launch_figures=(*TIMES, BLOCKS, LDS, VGPRS, AGPRS, SCRATCH),
    counters={**AMD_WORK, **AMD_MATRIX, **AMD_VECTOR},
    gauge="hkbench.drivers.amd:AmdSmi",
    lists_devices="rocminfo",
    libraries_removable=True,
    build_targets=lambda arch: {"PYTORCH_ROCM_ARCH": arch},
)
