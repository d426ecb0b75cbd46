"""What makes a timing doubtful though nobody lied: scatter, few samples, drift, company."""

from __future__ import annotations

import importlib
import importlib.util
import math
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

MAX_SPREAD = 0.10  #: median absolute deviation over median
MIN_SAMPLES = 10
MAX_DRIFT = 0.05  #: between the medians of the first and the last third
MIN_PARTS, MAX_PARTS = 3, 10  #: of a series
MIN_APART = 0.01  #: of their ratios; less is within what two processes differ by anyway (measure.PROCESS_VARIATION)
MAX_APART = 10.0  #: between parts, in median absolute deviations of a pair over the root of the pairs in a part
QUERY_SECONDS = 5.0


@dataclass(frozen=True)
class GpuState:
    """Who is on a GPU before or after a measurement; None: the tool does not say."""

    processes: frozenset[int] | None = None  #: ids of processes that compute on it


def stability(name: str, samples: Sequence[float]) -> tuple[str, ...]:
    """Return warnings about one side's seconds per call, in the order of the calls; `name` is the side's."""
    if len(samples) < MIN_SAMPLES:
        return (f"only {len(samples)} timed runs of the {name}; {MIN_SAMPLES} are the least to trust",)
    warnings = []
    middle = median(samples)
    spread = _deviation(samples) / middle if middle else 0.0
    if spread > MAX_SPREAD:
        warnings.append(
            f"the {name}'s times scatter by {spread:.0%} around their median; is something else running here?"
        )
    third = len(samples) // 3
    first, last = median(samples[:third]), median(samples[-third:])
    # Drift has to stand out of the scatter within the thirds, or every noisy series had some.
    noise = max(_deviation(samples[:third]), _deviation(samples[-third:]))
    if abs(last - first) > max(MAX_DRIFT * first, 2.0 * noise) and first > 0:
        warnings.append(
            f"the {name}'s times drifted by {(last - first) / first:+.0%} from the first to the last third; "
            "the device warmed up or its clock changed"
        )
    return tuple(warnings)


def unsteady_ratios(left: Sequence[float], right: Sequence[float]) -> tuple[float, ...]:
    """Return the medians' ratio in each part of the pairs, if these differ more than the pairs' scatter explains.

    What slows both sides down alike cancels in a pair. But a process whose core somebody else uses too for a while is
    slower than the other one for as long, where the host takes the time: of 770 equal launches on an H200 one side took
    7.5 ms and the other 5.4, until both took 5.2. Pairs are no independent samples then, and the bootstrap, which takes
    them as such, is far too sure: where equal sides change between those times every 50 calls or so, at random, it
    leaves out 1 in two of three cases; with the interval of these ratios' median within, in one of three (40 pairs) to
    one of nine (300). Of independent pairs one series in thirty has any.
    """
    count = min(MAX_PARTS, len(left) // MIN_SAMPLES)
    if len(left) != len(right) or count < MIN_PARTS or not min(right) > 0.0:
        return ()
    pairs = [one / other for one, other in zip(left, right, strict=True)]
    cuts = [slice(at * len(left) // count, (at + 1) * len(left) // count) for at in range(count)]
    parts = [median(left[cut]) / median(right[cut]) for cut in cuts]
    # The usual one: within a part in which a side changes, pairs scatter over both.
    scatter = median(_deviation(pairs[cut]) for cut in cuts)
    least = max(MIN_APART * median(parts), MAX_APART * scatter / math.sqrt(len(left) / count))
    return tuple(parts) if max(parts) - min(parts) > least else ()


def _deviation(samples: Sequence[float]) -> float:
    """Return the median absolute deviation from the median."""
    middle = median(samples)
    return median(abs(value - middle) for value in samples)


def gpu_state(uuid: str) -> GpuState:
    """Return the processes on an NVIDIA GPU ("GPU-..."), by NVML's Python binding, else by nvidia-smi.

    Empty where neither says anything.
    """
    if importlib.util.find_spec("pynvml") is not None:
        return _by_nvml(uuid)
    processes = _query(uuid, "--query-compute-apps=pid")
    return GpuState(
        processes=None if processes is None else frozenset(int(line) for line in processes if line.isdigit()),
    )


def _by_nvml(uuid: str) -> GpuState:
    nvml: Any = importlib.import_module("pynvml")
    try:
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        return GpuState(
            processes=frozenset(process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle)),
        )
    except nvml.NVMLError:
        return GpuState()


def gpu_stability(before: GpuState, after: GpuState, ours: frozenset[int]) -> tuple[str, ...]:
    """Return warnings from the state of a GPU before and after.

    `ours` are the process ids of the worker and its runners.
    """
    warnings = []
    strangers = ((before.processes or frozenset()) | (after.processes or frozenset())) - ours
    if strangers:
        count = len(strangers)
        warnings.append(f"{count} other process{'es' if count > 1 else ''} used the GPU during the measurement")
    return tuple(warnings)


def _query(uuid: str, what: str) -> list[str] | None:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    command = [tool, "-i", uuid, what, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=QUERY_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else None
