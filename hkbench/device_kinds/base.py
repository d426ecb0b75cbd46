"""The description of one kind of device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hkbench.records import DeviceKind, SizeSet


class Profiler(StrEnum):
    """Name the tools that a profile can come from."""

    ROCPROFV3 = "rocprofv3"
    ROCPROFV2 = "rocprofv2"
    ROCPROF = "rocprof"
    NCU = "ncu"
    PROTON = "proton"  #: Triton's own, around kernels in Triton where no maker's can be used
    TORCH = "torch"  #: torch's profiler in the runner: it reads no counters and needs no installation


@dataclass(frozen=True)
class CallLimits:
    """How far the overheads of two quiet runners may differ, and what a traced call may cost, in seconds or shares."""

    absolute: float  #: seconds that are allowed in any case
    after_call: float  #: seconds more between the end of `forward` and its answer
    held: float  #: seconds of the overhead that both sides have alike by the device's own count
    reported_share: float  #: share of the candidate's own time
    trace_slack: float  #: seconds that a profiler may cost a call
    #: Of the device's work in a traced call, over what timed calls take: the same kernels work as long in both.
    busy_ratio: float = 1.5
    busy_slack: float = 1e-4  #: seconds
    #: Seconds between the kernels of a short call that were all queued before its clock began; `None`: not known.
    queued_slack: float | None = None


@dataclass(frozen=True)
class DeviceModel:
    """What the harness has to know of a kind of device. Add a kind by one file here and one line of `KINDS`."""

    kind: DeviceKind
    label: str  #: in a headline: "NVIDIA GPU"
    phrase: str  #: in a sentence: "an NVIDIA GPU"
    #: It computes on the cores of the host, and its outputs are read from memory.
    on_host: bool
    unit: str  #: prompts' word for a processor of it: "compute unit", "multiprocessor", "core"
    lanes: str  #: prompts' word for what runs in step: "wave", "warp", "thread"
    local_memory: str  #: prompts' word for the memory of a unit: "LDS", "shared memory"
    clock: str  #: the runner's own clock, as a verdict names it
    limits: CallLimits
    default_runs: int  #: pairs of timed calls of a round
    resolution: float  #: seconds by which the time of a call of either side may be off, in 95 of 100 cases
    process_variation: float  #: share by which two processes with the same kernel differ, in 95 of 100 cases
    default_sizes: SizeSet
    default_shapes: int = 4  #: further ones, at which a correct candidate is looked at
    max_growth: float = 2.0  #: of one size of a hidden shape, and of its bytes, over those in force
    profilers: tuple[Profiler, ...] = ()  #: best first; torch's comes after them
    figures: tuple[str, ...] = ()  #: names of figures derived from counters (records/metrics.py)
    launch_figures: tuple[str, ...] = ()  #: names of figures of a launch
    counters: Mapping[str, str] = field(default_factory=dict)  #: name and unit of what a profiler counts
    gauge: str = "hkbench.drivers.host:Processor"  #: the class that asks its driver how it does
    lists_devices: str | None = None  #: the command that lists devices of this kind
    evaluators_clock: str = "the evaluator's stamps on the device"  #: as a verdict names it, where it works
    null_every: int = 5  #: pairs of timed calls, with which a null call shows what a call costs by itself
    visible_devices: str | None = None  #: the variable by which a process hides the other devices from itself
    emulates: str | None = None  #: the architecture of an AMD GPU whose code is executed on the host: "gfx942"
    libraries_removable: bool = False  #: device code of libraries can be kept from a runner (engine/stripped.py)
    states_clocks: bool = False  #: the driver tells clocks and throttling (evaluation/stability.py)
    #: Give the environment of a build for one architecture only.
    build_targets: Callable[[str], dict[str, str]] = lambda _arch: {}

    @property
    def metrics(self) -> tuple[str, ...]:
        """All names that a profile on such a device can have."""
        return (*self.launch_figures, *self.figures, *self.counters)

    def torch_device(self, index: int) -> str:
        """Return torch's name of the device with this number."""
        return "cpu" if self.on_host else f"cuda:{index}"

    def candidates_device(self, index: int) -> str:
        """Return torch's name of the device as candidates see it."""
        return self.torch_device(index) if self.emulates is None else "cuda:0"

    def runs_what_is_for(self, kind: DeviceKind) -> bool:
        """Tell whether it runs candidates that are written for devices of a kind."""
        return kind is self.kind or (self.emulates is not None and kind is DeviceKind.ROCM)
