"""Time baseline and candidate in turn."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from hkbench.device_kinds import DeviceModel
from hkbench.evaluation.link import Stamps
from hkbench.evaluation.stability import MIN_SAMPLES, stability, unsteady_ratios
from hkbench.records import Contention, Interval, Readback, Timing
from hkbench.stats import median_interval, quantile, ratio_of_medians

MAX_ROUNDS = 3
#: Pairs of a GPU's first rounds. Of slow calls, of which so many took `SLOW_SECONDS`, those of the first may be enough.
FIRST_RUNS = 10, 10, 20
SLOW_SECONDS = 1.0
NARROW = 0.005  #: half of the interval of the speed-up over the speed-up; what more runs may add does not matter
MIN_HALF_INTERVAL = 0.002  #: not even where it is not settled which side is faster
#: Of the error that no number of runs narrows: what they leave makes an interval 1.4 times as wide at most.
ENOUGH_OF_FIXED = 1.0
MIN_RUNS = 5
WIDE_INTERVAL = 0.1
QUICK = 0.2  #: the quantile of calls that count as quick
MAX_DELAYED = 0.05  #: share by which the speed-up by quick calls may be less than that by medians, on a GPU


@dataclass
class Samples:
    """Seconds of each call: by the runner's clock, until the device is idle, and by the evaluator's own clock.

    `wall` is the evaluator's of the forward pass with its messages, `rest` of what came between its end and the answer.
    """

    seconds: list[float] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    rest: list[float] = field(default_factory=list)

    def extend(self, more: Samples) -> None:
        self.seconds += more.seconds
        self.idle += more.idle
        self.wall += more.wall
        self.rest += more.rest

    def add_span(self, seconds: float | None) -> None:
        """Add a call by the evaluator's clock on the device, with what a call costs by itself."""
        assert seconds is not None
        self.add(seconds, seconds, Stamps(wall=seconds))

    def less(self, overhead: float, resolution: float = 0.0) -> Samples:
        """Return the same calls, each shorter by the seconds that a call costs by itself.

        What is left of one is no less than the clock's resolution: so short a call took between nothing and that.
        """
        if not overhead:
            return self
        seconds = [max(resolution, span - overhead) for span in self.seconds]
        return Samples(seconds, list(seconds), list(self.wall), list(self.rest))

    def add(self, seconds: float, idle: float, stamps: Stamps) -> None:
        self.seconds.append(seconds)
        self.idle.append(idle)
        self.wall.append(stamps.wall)
        self.rest.append(stamps.rest)


@dataclass(frozen=True)
class Measurement:
    baseline: Timing
    candidate: Timing
    speedup: Interval  #: with what the clock and two processes cannot tell apart
    sampled: Interval  #: without: what more runs would narrow
    fixed: float  #: what they would not: half of an interval over the speed-up
    samples: tuple[Samples, Samples]  #: of baseline and candidate, as they came
    warnings: tuple[str, ...]
    contention: Contention | None = None  #: on a CPU
    readback: Readback | None = None  #: on a GPU

    @property
    def settled(self) -> bool:
        """Whether the interval of the speed-up leaves no doubt of which side is faster.

        Asked after each round, so it is asked of an interval twice as wide: stopping at the first one that happens to
        leave out 1.0 would make the stated 95 % wrong.
        """
        value, low, high = self.speedup.value, self.speedup.low, self.speedup.high
        return not 2 * low - value < 1.0 <= 2 * high - value

    def enough(self, runs: int, cut: bool = False) -> bool:
        """Return whether no more rounds are needed, where a usual one has `runs` pairs.

        They are not where more runs would hardly narrow the stated interval, whatever it says: most of it is what the
        clock and two processes cannot tell apart.

        `cut`: the time limit ended the last round early. Then it is enough to know which side is faster, once there are
        as many runs as the clocks' noise is judged by: of a slow candidate another round would take as long again.
        """
        half = max(self.sampled.high - self.sampled.value, self.sampled.value - self.sampled.low) / self.sampled.value
        count = len(self.samples[0].seconds)
        many = count >= runs or (cut and count >= MIN_SAMPLES)
        return half <= max(MIN_HALF_INTERVAL, ENOUGH_OF_FIXED * self.fixed) or (
            self.settled and (half <= NARROW or many)
        )


def rounds(asked: int | None, model: DeviceModel) -> tuple[int, ...]:
    """Return the pairs of each round. What the user asks for is the least that is made."""
    runs = asked or model.default_runs
    if asked is None and not model.on_host:
        return (*FIRST_RUNS, runs - sum(FIRST_RUNS), *[runs] * (MAX_ROUNDS - 1))
    return (runs,) * MAX_ROUNDS


def interleave(
    baseline: Callable[[Samples, int], None],
    candidate: Callable[[Samples, int], None],
    between: Callable[[int], None],
    runs: int,
    seconds: float,
    warmups: int,
    draw: Callable[[int], int],
) -> tuple[Samples, Samples]:
    """Run both sides alternately, so that drifting clocks and noisy neighbours meet both alike.

    Each is called with the number of its pair (below 0: a warm-up), so that both can make the same fresh inputs for it.
    `between` is called after each pair.

    At least `MIN_RUNS` of each; no new pair is begun after `seconds`. Of each two pairs one begins with the candidate:
    which is drawn (`draw(2)`), so that nobody knows whose call is next.
    """
    left, right = Samples(), Samples()
    first = 0
    for number in range(warmups):
        baseline(Samples(), -1 - number)
        candidate(Samples(), -1 - number)
    began = time.monotonic()
    for number in range(runs):
        if number >= MIN_RUNS and time.monotonic() - began > seconds:
            break
        if number % 2 == 0:
            first = draw(2)
        if (number + first) % 2:
            candidate(right, number)
            baseline(left, number)
        else:
            baseline(left, number)
            candidate(right, number)
        between(number)
    return left, right


def conclude(
    left: Samples,
    right: Samples,
    clock: str,
    warmups: int,
    model: DeviceModel,
    overheads: tuple[float, float] = (0.0, 0.0),
    unreported: float = 0.0,
) -> Measurement:
    """Return medians with intervals, their ratio, and what makes the figures doubtful.

    `overheads`: seconds of each call of the baseline and of the candidate that are not the forward pass's.
    `unreported`: seconds of each of the candidate's calls that its runner did not report (evaluation/clocks.py); they
    are part of its time.
    """
    left, reported = left.less(overheads[0], model.resolution), right.less(overheads[1], model.resolution)
    right = reported.less(-unreported)
    warnings = []
    if unreported:
        warnings.append(f"the candidate's times hold {unreported * 1e3:.3g} ms a call that its process did not report")
    sampled = ratio_of_medians(left.seconds, right.seconds)
    parts = unsteady_ratios(left.seconds, right.seconds)
    if parts:
        usual = median_interval(parts)
        sampled = Interval(value=sampled.value, low=min(sampled.low, usual.low), high=max(sampled.high, usual.high))
        warnings.append(
            f"the speed-up went between {min(parts):.3g} and {max(parts):.3g} during the measurement, which its "
            "interval allows for: one side was slowed down for a while that the other was not; is something else "
            "running here?"
        )
    medians = median(left.seconds), median(right.seconds)
    fixed = math.hypot(model.process_variation, *(model.resolution / seconds for seconds in medians))
    by_quick = quantile(left.seconds, QUICK) / quantile(right.seconds, QUICK)  # delays only ever add time
    if not model.on_host and by_quick * (1.0 + MAX_DELAYED + 3.0 * fixed) < sampled.value:
        warnings.append(
            f"the quick calls of both sides say {by_quick:.3g}, the medians {sampled.value:.3g}: something delayed "
            "many of the baseline's calls, and the speed-up is that of the quick ones"
        )
        sampled = Interval(value=by_quick, low=min(by_quick, sampled.low), high=sampled.high)
    speedup = _widened(sampled, fixed)
    if speedup.low < 1.0 <= speedup.high:
        warnings.append("the interval of the speed-up holds 1.0: whether the candidate is faster is not settled")
    for name, values in (("baseline", left.seconds), ("candidate", right.seconds)):
        interval = median_interval(values)
        width = (interval.high - interval.low) / interval.value if interval.value else 0.0
        if width > WIDE_INTERVAL:
            warnings.append(f"the {name}'s median is uncertain by {width:.0%}; more --timing-runs would narrow it")
        warnings += stability(name, values)
    return Measurement(
        baseline=_timing(left, clock, warmups),
        candidate=_timing(right, clock, warmups, unreported),
        speedup=speedup,
        sampled=sampled,
        fixed=fixed,
        samples=(left, reported),
        warnings=tuple(warnings),
    )


def _widened(speedup: Interval, fixed: float) -> Interval:
    """Widen the interval by a share that no number of runs can resolve: errors of a quotient add in quadrature.

    Each end is a factor from the value, so that the lower one stays a speed-up, however little is known.
    """
    below, above = speedup.value / speedup.low - 1.0, speedup.high / speedup.value - 1.0
    low, high = speedup.value / (1.0 + math.hypot(below, fixed)), speedup.value * (1.0 + math.hypot(above, fixed))
    return Interval(value=speedup.value, low=low, high=high)


def _timing(samples: Samples, clock: str, warmups: int, unreported: float = 0.0) -> Timing:
    return Timing(
        samples=tuple(samples.seconds),
        median=median_interval(samples.seconds),
        clock=clock,
        warmups=warmups,
        judge_wall=tuple(samples.wall),
        judge_rest=tuple(samples.rest),
        unreported=unreported,
    )
