"""Order of the timed runs, and what is concluded from their figures."""

from __future__ import annotations

import math

import pytest

from hkbench.device_kinds.cpu import CPU
from hkbench.device_kinds.cuda import CUDA
from hkbench.device_kinds.rocm import ROCM
from hkbench.evaluation.link import Stamps
from hkbench.evaluation.measure import (
    MIN_RUNS,
    Measurement,
    Samples,
    conclude,
    interleave,
    rounds,
)


def run(runs: int, seconds: float, warmups: int, drawn: tuple[int, ...] = ()) -> tuple[list[str], Samples, Samples]:
    order: list[str] = []
    draws = iter(drawn)

    def baseline(samples: Samples, number: int) -> None:
        order.append(f"B{number}")
        samples.add(2.0, 2.0, Stamps(begun=1.0, wall=2.5, rest=0.1))

    def candidate(samples: Samples, number: int) -> None:
        order.append(f"C{number}")
        samples.add(1.0, 1.0, Stamps(begun=1.0, wall=1.5, rest=0.1))

    def between(number: int) -> None:
        order.append(f"W{number}")

    return (order, *interleave(baseline, candidate, between, runs, seconds, warmups, lambda _below: next(draws, 0)))


def test_the_order_alternates_after_the_warm_ups() -> None:
    order, left, right = run(runs=4, seconds=60, warmups=2)
    assert " ".join(order) == "B-1 C-1 B-2 C-2 B0 C0 W0 C1 B1 W1 B2 C2 W2 C3 B3 W3"
    assert left.seconds == [2.0] * 4 and right.seconds == [1.0] * 4
    assert left.wall == [2.5] * 4 and left.rest == [0.1] * 4


def test_who_begins_is_drawn_for_each_two_pairs() -> None:
    order, _, _ = run(runs=4, seconds=60, warmups=0, drawn=(1, 0))
    assert " ".join(order) == "C0 B0 W0 B1 C1 W1 B2 C2 W2 C3 B3 W3"


def test_there_is_a_fewest_number_of_runs_whatever_the_time() -> None:
    order, left, right = run(runs=50, seconds=-1.0, warmups=0)
    assert len(left.seconds) == len(right.seconds) == MIN_RUNS
    assert len(order) == 3 * MIN_RUNS


def samples(seconds: list[float], idle: list[float] | None = None) -> Samples:
    return Samples(list(seconds), list(idle or seconds), [value + 1 for value in seconds], [0.1] * len(seconds))


def test_the_speed_up_is_the_ratio_of_the_medians() -> None:
    found = conclude(samples([4.0] * 12), samples([2.0] * 12), "perf_counter", 3, CPU)
    assert found.speedup.value == 2.0
    assert (found.baseline.median.value, found.candidate.median.value) == (4.0, 2.0)
    assert found.candidate.judge_wall == (3.0,) * 12
    assert (found.candidate.clock, found.candidate.warmups) == ("perf_counter", 3)
    assert found.warnings == ()


def test_a_wide_interval_is_a_warning() -> None:
    found = conclude(samples([40.0] * 12), samples([1.0, 2.0, 3.0] * 4), "perf_counter", 0, CPU)
    assert "candidate's median is uncertain by 100%" in found.warnings[0]
    assert "candidate's times scatter by" in found.warnings[1]
    assert found.speedup.value == pytest.approx(20.0)


def test_an_unsettled_speed_up_is_a_warning() -> None:
    found = conclude(samples([2.0, 1.99, 2.01] * 5), samples([2.0, 2.01, 1.99] * 5), "perf_counter", 0, CPU)
    assert found.speedup.low <= 1.0 <= found.speedup.high
    assert len(found.warnings) == 1
    assert "holds 1.0" in found.warnings[0]


def test_what_no_number_of_runs_tells_apart_is_in_the_interval() -> None:
    exact = conclude(samples([4e-4] * 12), samples([2e-4] * 12), "device events", 3, CUDA)
    factor = 1.0 + math.hypot(CUDA.process_variation, CUDA.resolution / 4e-4, CUDA.resolution / 2e-4)
    assert exact.speedup.value == 2.0
    assert (exact.speedup.low, exact.speedup.high) == pytest.approx((2.0 / factor, 2.0 * factor))
    assert exact.sampled.low == exact.sampled.high == 2.0
    short = conclude(samples([4e-7] * 12), samples([2e-7] * 12), "device events", 3, CUDA)
    assert 0.0 < short.speedup.low < 0.5, "a report drops a verdict whose figures are not positive"


def test_a_side_that_was_slow_for_a_while_makes_the_interval_hold_what_it_was_without() -> None:
    usual = [5.2, 5.21, 5.19] * 20
    slowed = [7.5, 7.51, 7.49] * 14 + usual[:18]
    once = [7.5, 7.51, 7.49] * 4 + usual * 2
    found = conclude(samples(slowed), samples(usual), "device events", 3, CUDA)
    assert found.speedup.value == pytest.approx(1.0, rel=0.01), "as the calls say that nothing slowed down"
    assert found.speedup.low < 1.0 < 7.5 / 5.2 < found.speedup.high
    assert any("went between 1 and 1.44 during the measurement" in warning for warning in found.warnings)
    assert not found.settled and not found.enough(40), "so it is measured for longer"
    brief = conclude(samples(once[:120]), samples(usual * 2), "device events", 3, CUDA)
    assert brief.speedup.high < 1.01, "a part of ten is no usual one"
    assert any("went between 1 and 1.44" in warning for warning in brief.warnings)


def test_rounds_end_when_more_runs_would_add_nothing() -> None:
    def found(left: list[float], right: list[float]) -> Measurement:
        return conclude(samples(left), samples(right), "device events", 3, CUDA)

    def spread(middle: float, share: float, count: int) -> list[float]:
        return [middle * (1.0 + share * (n * 37 % 101 - 50) / 50) for n in range(count)]

    assert found(spread(2e-3, 0.001, 40), spread(1e-3, 0.001, 40)).enough(100), "narrow, and settled"
    assert not found(spread(2e-3, 0.1, 40), spread(1e-3, 0.1, 40)[::-1]).enough(100), "settled, but wide after few"
    cut = found(spread(2e-3, 0.1, 40), spread(1e-3, 0.1, 40)[::-1])
    assert cut.enough(100, cut=True), "settled, and another round would be as slow"
    assert not found(spread(1e-3, 0.03, 40), spread(1e-3, 0.03, 40)[::-1]).enough(100, cut=True), "not settled"
    few = found(spread(2e-3, 0.1, 5), spread(1e-3, 0.1, 5)[::-1])
    assert not few.enough(100, cut=True), "too few runs to judge the clocks by"
    assert found(spread(2e-3, 0.1, 100), spread(1e-3, 0.1, 100)[::-1]).enough(100), "settled, after many"
    assert not found(spread(1e-3, 0.03, 100), spread(1e-3, 0.03, 100)[::-1]).enough(100), "not settled"
    assert found([1e-3] * 40, [1e-3] * 40).enough(100), "as narrow as it may get"
    short = found(spread(4e-6, 0.2, 40), spread(4e-6, 0.2, 40)[::-1])
    assert not short.settled and short.enough(100), "the clock's resolution is most of the interval"


def test_a_gpus_first_rounds_are_short_unless_the_user_asks_for_a_number() -> None:
    assert rounds(None, CUDA) == rounds(None, ROCM) == (10, 10, 20, 60, 100, 100)
    assert rounds(None, CPU) == (30, 30, 30)
    assert rounds(25, CUDA) == (25, 25, 25)


def test_delays_of_the_baseline_alone_make_nobody_faster() -> None:
    delayed = [3e-4 if n % 3 else 1e-4 for n in range(60)]
    found = conclude(samples(delayed), samples([1e-4] * 60), "device events", 3, CUDA)
    assert found.speedup.value == pytest.approx(1.0)
    assert any("something delayed many of the baseline's calls" in warning for warning in found.warnings)
    steady = conclude(samples([3e-4] * 60), samples(delayed), "device events", 3, CUDA)
    assert steady.speedup.value == 1.0, "its own delays are the candidate's"
