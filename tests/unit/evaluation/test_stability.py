"""Warnings about timings that nobody should lean on."""

from __future__ import annotations

import numpy as np
import pytest

from hkbench.evaluation.stability import GpuState, gpu_stability, gpu_state, stability, unsteady_ratios

RANDOM = np.random.default_rng(5)


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (list(1e-3 * RANDOM.normal(1, 0.01, 60)), None),
        (list(1e-3 * RANDOM.normal(1, 0.1, 60)), None),
        ([1e-3] * 9, "only 9 timed runs of the baseline"),
        (list(1e-3 * RANDOM.lognormal(0, 0.5, 60)), "scatter by"),
        (list(np.linspace(1e-3, 1.02e-3, 60)), None),
        (list(np.repeat((1e-3, 1.2e-3), 30) * RANDOM.normal(1, 0.001, 60)), "drifted by +"),
        ([1.0] * 40 + [0.8] * 20, "drifted by -20%"),
    ],
)
def test_one_side(samples: list[float], words: str | None) -> None:
    warnings = stability("baseline", samples)
    assert bool(warnings) is (words is not None), warnings
    assert words is None or any(words in warning for warning in warnings)


def test_the_gpu_before_and_after() -> None:
    ours = GpuState(frozenset({1, 2}))
    assert gpu_stability(ours, GpuState(frozenset({1})), frozenset({1, 2})) == ()
    assert gpu_stability(GpuState(), GpuState(), frozenset()) == ()
    (warning,) = gpu_stability(ours, GpuState(frozenset({1, 9})), frozenset({1, 2}))
    assert "1 other process used" in warning


def test_a_machine_without_the_tool_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert gpu_state("GPU-0") == GpuState(None)


def series(fast: float, slow: float, changes: tuple[int, ...], count: int) -> list[float]:
    """A process that is slow, fast, slow... between the changes, with a scatter of 1 %."""
    level = [slow if sum(at >= change for change in changes) % 2 == 0 else fast for at in range(count)]
    return [float(value) for value in level * RANDOM.normal(1, 0.01, count)]


@pytest.mark.parametrize("count", [30, 40, 100, 300])
def test_one_side_that_is_slow_for_a_while_is_told_from_both(count: int) -> None:
    fast, changed = series(5.2, 7.5, (0,), count), series(5.2, 7.5, (count // 2,), count)
    parts = unsteady_ratios(changed, fast)
    assert min(parts) == pytest.approx(1.0, abs=0.02) and max(parts) == pytest.approx(7.5 / 5.2, rel=0.02)
    assert unsteady_ratios(changed, [value / 2 for value in changed]) == (), "both alike"
    assert unsteady_ratios(changed[:-1], fast) == (), "no pairs"
    assert unsteady_ratios(changed[:20], fast[:20]) == (), "too few to say"


def test_of_steady_sides_one_series_in_thirty_or_so_seems_to_be_none() -> None:
    draws = RANDOM.normal(1, 0.03, (300, 2, 100))
    assert sum(bool(unsteady_ratios(list(left), list(right))) for left, right in draws) < 300 * 0.06
