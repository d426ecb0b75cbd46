"""Which makers' profilers a machine has, where, and what keeps them from being used."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hkbench.device_kinds import Profiler, model_of
from hkbench.records import DeviceKind
from hkbench.rocm import rocm_roots

Find = Callable[[str], str | None]


#: The parts that the README of ROCm/rocprofiler lists for the older two; gfx950 came later.
_OLD_TOOLS = frozenset({Profiler.ROCPROFV2, Profiler.ROCPROF})
_NOT_FOR_OLD_TOOLS = frozenset({"gfx950"})
#: Where each comes from.
PACKAGES = {
    Profiler.ROCPROFV3: "ROCm's package rocprofiler-sdk has it",
    Profiler.ROCPROFV2: "ROCm's package rocprofiler has it",
    Profiler.ROCPROF: "ROCm's package rocprofiler has it",
    Profiler.NCU: "CUDA's package nsight-compute has it",
}
#: Where NVIDIA's driver says who may read counters.
NVIDIA_PARAMETERS = Path("/proc/driver/nvidia/params")
_ADMINISTRATORS = (
    "counters are for administrators here: set the driver's option NVreg_RestrictProfilingToAdminUsers=0, or torch's "
    "profiler is used"
)


@dataclass(frozen=True)
class Standing:
    """One maker's profiler on this machine."""

    profiler: Profiler
    program: str | None  #: its path
    obstacle: str | None  #: why it is not used: not installed (and what has it), or not for this part
    caution: str | None = None  #: why it may fail, after which torch's is used


def find_program(name: str) -> str | None:
    """Return the path of a profiler: on PATH, or where ROCm and CUDA put it."""
    cuda = [Path(root) for root in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if root]
    extra = [str(root / "bin") for root in (*rocm_roots(os.environ), *cuda)]
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *extra]))


def standings(kind: DeviceKind, arch: str | None, find: Find = find_program) -> Iterator[Standing]:
    """Yield the makers' profilers for a kind of device, best first, each looked for as it is asked for."""
    for profiler in model_of(kind).profilers:
        program = find(profiler.value)
        obstacle = None
        if profiler in _OLD_TOOLS and arch in _NOT_FOR_OLD_TOOLS:
            obstacle = f"{profiler} does not know {arch}"
        elif program is None:
            obstacle = f"{profiler} is not installed ({PACKAGES[profiler]})"
        caution = _ADMINISTRATORS if profiler is Profiler.NCU and _counters_are_for_administrators() else None
        yield Standing(profiler, program, obstacle, caution)


def _counters_are_for_administrators() -> bool:
    try:
        return "RmProfilingAdminOnly: 1" in NVIDIA_PARAMETERS.read_text()
    except OSError:
        return False
