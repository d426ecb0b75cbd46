"""Times baseline and candidate in turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hkbench.records import DeviceKind, Interval, Timing
from hkbench.stats import median_interval, ratio_of_medians

DEFAULT_RUNS = {DeviceKind.CPU: 30, DeviceKind.CUDA: 100, DeviceKind.ROCM: 100}
FEWEST_RUNS = 5
OFF_STREAM_RATIO = 1.5
OFF_STREAM_SLACK = 1e-4  #: seconds; a synchronise costs tens of microseconds
WIDE_INTERVAL = 0.1


@dataclass
class Samples:
    """Seconds of each call: by the clock of the call, until the device is idle, and by the judge's own clock."""

    seconds: list[float] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def extend(self, more: Samples) -> None:
        self.seconds += more.seconds
        self.idle += more.idle
        self.wall += more.wall

    def add(self, seconds: float, idle: float, wall: float) -> None:
        self.seconds.append(seconds)
        self.idle.append(idle)
        self.wall.append(wall)


@dataclass(frozen=True)
class Measurement:
    baseline: Timing
    candidate: Timing
    speedup: Interval
    warnings: tuple[str, ...]

    @property
    def settled(self) -> bool:
        """Whether the interval of the speed-up leaves no doubt of which side is faster."""
        return _is_settled(self.speedup)


def interleave(
    baseline: Callable[[Samples, int], None],
    candidate: Callable[[Samples, int], None],
    runs: int,
    seconds: float,
    warmups: int,
) -> tuple[Samples, Samples]:
    """Runs both sides alternately, so that drifting clocks and noisy neighbours meet both alike.

    Each is called with the number of its pair (below 0: a warm-up), so that both can make the same fresh inputs for it.
    At least `FEWEST_RUNS` of each; no new pair is begun after `seconds`. The order within a pair alternates.
    """
    left, right = Samples(), Samples()
    for number in range(warmups):
        baseline(Samples(), -1 - number)
        candidate(Samples(), -1 - number)
    began = time.monotonic()
    for number in range(runs):
        if number >= FEWEST_RUNS and time.monotonic() - began > seconds:
            break
        if number % 2:
            candidate(right, number)
            baseline(left, number)
        else:
            baseline(left, number)
            candidate(right, number)
    return left, right


def conclude(left: Samples, right: Samples, clock: str, warmups: int) -> Measurement:
    """Medians with intervals, their ratio, and what makes the figures doubtful."""
    warnings = []
    seconds = right.seconds
    event_median, idle_median = _middle(right.seconds), _middle(right.idle)
    if idle_median > OFF_STREAM_RATIO * event_median + OFF_STREAM_SLACK:
        # Work that the current stream does not see: the time until the device is idle is what it cost.
        seconds = right.idle
        warnings.append("the candidate works outside the current stream; timed until the device was idle")
    speedup = ratio_of_medians(left.seconds, seconds)
    if not _is_settled(speedup):
        warnings.append("the interval of the speed-up holds 1.0: whether the candidate is faster is not settled")
    for name, values in (("baseline", left.seconds), ("candidate", seconds)):
        interval = median_interval(values)
        width = (interval.high - interval.low) / interval.value if interval.value else 0.0
        if width > WIDE_INTERVAL:
            warnings.append(f"the {name}'s median is uncertain by {width:.0%}; more --timing-runs would narrow it")
    return Measurement(
        baseline=_timing(left.seconds, left.wall, clock, warmups),
        candidate=_timing(seconds, right.wall, clock, warmups),
        speedup=speedup,
        warnings=tuple(warnings),
    )


def _is_settled(speedup: Interval) -> bool:
    return not speedup.low < 1.0 <= speedup.high


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _timing(seconds: list[float], wall: list[float], clock: str, warmups: int) -> Timing:
    return Timing(
        samples=tuple(seconds),
        median=median_interval(seconds),
        clock=clock,
        warmups=warmups,
        judge_wall=tuple(wall),
    )
