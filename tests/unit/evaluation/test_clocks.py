"""Clocks that agree and clocks that do not, with the noise of real machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hkbench.device_kinds import DeviceModel
from hkbench.device_kinds.cpu import CPU
from hkbench.device_kinds.cuda import CUDA
from hkbench.evaluation.clocks import compare, unreported
from hkbench.evaluation.measure import Samples

GPU = CUDA


def honest(
    random: np.random.Generator, seconds: float, overhead: float, n: int, noise: float, shift: np.ndarray[Any, Any]
) -> Samples:
    """Log-normal times, an overhead with scatter, and now and then a call that lost its core for a while."""
    times = seconds * np.exp(random.normal(0.0, noise, n))
    stolen = np.where(random.random(n) < 0.1, random.exponential(20 * overhead + 2e-3, n), 0.0)
    over = overhead * np.exp(random.normal(0.0, noise, n)) * shift + stolen
    rest = overhead * np.exp(random.normal(0.0, noise, n)) * shift + stolen
    return Samples(list(times), list(times * 1.0001 + 1e-5), list(times + over), list(rest))


def pair(
    random: np.random.Generator, left: float, right: float, overhead: float, n: int, noise: float
) -> tuple[Samples, Samples]:
    drift = np.linspace(1.0, 1.0 + random.uniform(-0.3, 0.3), n)
    skew = 1.0 + random.uniform(-0.03, 0.03)  # the runners' buffers do not lie alike
    return honest(random, left, overhead, n, noise, drift), honest(random, right, overhead, n, noise, drift * skew)


@pytest.mark.parametrize(("kind", "runs"), [(CPU, 30), (GPU, 100), (CPU, 9), (CPU, 5)])
def test_honest_candidates_on_noisy_machines_are_never_suspect(kind: DeviceModel, runs: int) -> None:
    random = np.random.default_rng(runs)
    for _ in range(1000):
        left, right = 10 ** random.uniform(-5, -1, 2)
        overhead, noise = 10 ** random.uniform(-3.5, -1.5), random.uniform(0.01, 0.4)
        found = compare(*pair(random, left, right, overhead, runs, noise), None, kind)
        assert found.agree, found


@pytest.mark.parametrize(
    ("kind", "seconds", "lie", "overhead", "noise"),
    [
        (CPU, 1e-3, 0.5, 5e-4, 0.05), (CPU, 2e-3, 0.4, 1e-3, 0.03), (CPU, 2e-2, 0.3, 5e-3, 0.1),
        (CPU, 0.1, 0.3, 2e-2, 0.1), (CPU, 1.0, 0.3, 2e-2, 0.1), (CPU, 0.1, 0.999, 2e-2, 0.3),
        (GPU, 5e-4, 0.3, 4e-4, 0.03), (GPU, 2e-4, 0.9, 3e-4, 0.05), (GPU, 1e-2, 0.1, 5e-4, 0.05),
    ],
)  # fmt: skip
def test_lies_are_found(kind: DeviceModel, seconds: float, lie: float, overhead: float, noise: float) -> None:
    random = np.random.default_rng(7)
    for _ in range(100):
        left, right = pair(random, seconds, seconds, overhead, 30 if kind is CPU else 100, noise)
        right.seconds = [value * (1 - lie) for value in right.seconds]
        right.idle = list(right.seconds)
        found = compare(left, right, None, kind)
        assert not found.agree
        assert "the evaluator's clock saw" in found.reasons[0] and " ms more per call" in found.reasons[0]


def test_who_waits_long_for_a_gpu_goes_on_later() -> None:
    """As an honest candidate of 52.3 ms on an H200 was measured beside a baseline of 0.99 ms, each 40 times."""
    random = np.random.default_rng(3)
    left, right = (
        Samples([seconds] * 40, [seconds] * 40, list(seconds + overhead + random.normal(0.0, 4e-5, 40)), [1e-3] * 40)
        for seconds, overhead in ((0.000993, 0.000977), (0.052328, 0.001255))
    )
    assert compare(left, right, None, GPU).agree
    hidden = Samples([value * 0.97 for value in right.seconds], right.idle, right.wall, right.rest)
    assert not compare(left, hidden, None, GPU).agree


def test_lies_that_vary_do_not_pay_for_themselves() -> None:
    random = np.random.default_rng(3)
    for _ in range(100):
        left, right = pair(random, 0.02, 0.02, 5e-3, 30, 0.05)
        right.seconds = [value * random.uniform(0.02, 1.0) for value in right.seconds]
        assert not compare(left, right, None, CPU).agree


def test_a_call_longer_than_the_wait_for_it() -> None:
    left, right = pair(np.random.default_rng(1), 1e-3, 1e-3, 1e-3, 30, 0.02)
    right.seconds[4] = right.wall[4] * 1.5
    found = compare(left, right, None, CPU)
    assert any("longer than the evaluator waited" in reason for reason in found.reasons)


def test_work_that_was_put_off() -> None:
    left, right = pair(np.random.default_rng(1), 1e-3, 1e-3, 1e-3, 30, 0.02)
    right.rest = [rest + 2e-3 for rest in right.rest]
    found = compare(left, right, None, CPU)
    assert any("work was put off" in reason for reason in found.reasons)


@pytest.mark.parametrize("where", ["wall", "rest"])
def test_what_is_not_reported_is_charged_however_loud_the_machine(where: str) -> None:
    for scatter in (1e-5, 5e-3):
        left, right = pair(np.random.default_rng(1), 1e-3, 1e-3, 1e-3, 30, 0.02)
        loud = np.random.default_rng(2).uniform(0.0, scatter, 30)
        for side in (left, right):
            setattr(side, where, [value + more for value, more in zip(getattr(side, where), loud, strict=True)])
        assert unreported(left, right, CPU) == 0.0
        setattr(right, where, [value + 8e-3 for value in getattr(right, where)])
        assert unreported(left, right, CPU) == pytest.approx(8e-3, abs=1.5e-3)


def test_work_on_an_unjoined_stream() -> None:
    left, right = pair(np.random.default_rng(1), 5e-4, 5e-4, 1e-3, 100, 0.02)
    right.idle = [seconds + 1e-3 for seconds in right.seconds]
    found = compare(left, right, None, GPU)
    assert any("outside of the current stream" in reason for reason in found.reasons)
    joined = compare(left, Samples(right.seconds, right.seconds, right.wall, right.rest), None, GPU)
    assert joined.agree


def seen(**changes: Any) -> dict[str, Any]:
    return {"seconds": 1e-3, "busy_seconds": 9e-4, "outside_seconds": 0.0, "outputs": True, **changes}


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (seen(), None),
        (seen(seconds=1.8e-3), None),  # the profiler costs something
        ({"error": "no kineto"}, None),
        ({"error": "stopped", "stopped": True}, "was stopped during the call"),
        (seen(busy_seconds=0.0, outputs=False), None),
        (seen(busy_seconds=0.0), "no kernel ran"),
        (seen(busy_seconds="x"), "no kernel ran"),
        (seen(busy_seconds=3e-3), "the device worked for 3.000 ms in a call while"),
        (seen(outside_seconds=1e-3), "before the call or after it"),
        (seen(unjoined_seconds=1e-6), None),
        (seen(unjoined_seconds=1e-5), "after the current stream had ended"),
        (seen(other_streams_seconds=8e-4), None),  # joined: the events hold all of it
        (seen(busy_seconds=1.09e-3), None),  # it took longer while it was traced
        (seen(busy_seconds=1.2e-3), "both are the same call"),  # a slower kernel while it is traced
        (seen(busy_seconds=1.4e-3, other_streams_seconds=1.3e-3), "of it on streams that the current one"),
        (seen(seconds=8e-3), None),  # a profiler makes launches longer, and those of timed calls were queued before
    ],
)
def test_the_trace_of_a_device(trace: dict[str, Any], words: str | None) -> None:
    left, right = pair(np.random.default_rng(1), 1e-3, 1e-3, 1e-3, 100, 0.01)
    found = compare(left, right, trace, GPU)
    assert found.agree is (words is None), found
    assert words is None or any(words in reason for reason in found.reasons)


def test_a_traced_call_that_is_much_faster_than_the_timed_ones() -> None:
    left, right = pair(np.random.default_rng(1), 0.05, 0.05, 1e-3, 30, 0.01)
    assert not compare(left, right, seen(seconds=2e-3), CPU).agree
    assert compare(left, right, seen(seconds=0.06), CPU).agree


def test_a_traced_call_that_was_luckier_than_most() -> None:
    """Most calls shared a processor with others; those that did not were as quick as the traced one."""
    seconds = [0.05] * 25 + [2e-3] * 5
    left, right = (Samples(list(seconds), list(seconds), [s + 1e-3 for s in seconds], [1e-4] * 30) for _ in "12")
    assert compare(left, right, seen(seconds=2e-3), CPU).agree
    assert not compare(left, right, seen(seconds=0.4), CPU).agree


def test_figures_and_no_samples() -> None:
    left, right = (Samples([s] * 5, [s] * 5, [s + 0.5] * 5, [0.1] * 5) for s in (2.0, 1.0))
    found = compare(left, right, seen(busy_seconds=0.7, seconds=1.0), GPU)
    assert (found.candidate, found.baseline, found.candidate_overhead, found.baseline_overhead) == (1.0, 2.0, 0.5, 0.5)
    assert found.trace == 0.7
    with pytest.raises(ValueError, match="samples"):
        compare(Samples(), right, None, CPU)


def late(random: np.random.Generator, share: float, n: int) -> Samples:
    """Make calls of 0.5 ms; in this share the evaluator hears of the end with the outputs, 0.45 ms later."""
    seconds = 5e-4 * np.exp(random.normal(0.0, 0.05, n))
    waits = np.where(random.random(n) < share, 4.5e-4, 0.0)
    wall = seconds + 3e-4 * np.exp(random.normal(0.0, 0.1, n)) + waits
    rest = 5e-4 * np.exp(random.normal(0.0, 0.1, n)) - waits
    return Samples(list(seconds), list(seconds), list(wall), list(rest))


def test_an_evaluator_that_hears_late_of_the_end_of_a_call_suspects_nobody() -> None:
    random = np.random.default_rng(3)
    for _ in range(300):
        left, right = late(random, 0.15, 12), late(random, 0.85, 12)
        assert compare(left, right, None, CPU).agree


def test_it_still_hears_of_what_was_left_out() -> None:
    random = np.random.default_rng(4)
    found = 0
    for _ in range(300):
        left, right = late(random, 0.5, 12), late(random, 0.5, 12)
        right.seconds = [value / 10 for value in right.seconds]
        found += not compare(left, right, None, CPU).agree
    assert found >= 250


def test_a_lie_is_charged_where_half_of_the_baselines_calls_were_disturbed() -> None:
    """The medians of such a machine hid a tenfold lie: 0.05 ms were reported of 0.45 ms."""
    random = np.random.default_rng(5)
    for _ in range(50):
        left, right = (Samples(list(random.normal(4.2e-4, 1e-5, 20)), rest=[0.0] * 20) for _ in range(2))
        disturbed = np.where(np.arange(20) % 2, 2.5e-3, 0.0)
        left.wall = list(np.array(left.seconds) + 4.5e-4 + random.normal(0.0, 2e-5, 20) + disturbed)
        right.wall = list(np.array(right.seconds) + 4.5e-4 + random.normal(0.0, 2e-5, 20) + 2e-4)
        assert unreported(left, right, CPU) <= 5e-5
        right.seconds = [value / 10 for value in right.seconds]
        assert 2e-4 < unreported(left, right, CPU) < 4e-4
