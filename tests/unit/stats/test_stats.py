"""Estimators against values worked by hand."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import NormalDist

import numpy as np
import pytest

from hkbench.stats import (
    best_of_k,
    bootstrap_interval,
    expanded_confidence,
    fast_p,
    geometric_mean,
    median_interval,
    pass_at_k,
    ratio_of_medians,
    share_interval,
)


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [
        (3, 0, 1, 0.0),
        (3, 1, 1, 1 / 3),
        (3, 1, 2, 2 / 3),  # 1 - C(2,2)/C(3,2) = 1 - 1/3
        (3, 1, 3, 1.0),
        (10, 3, 5, 1 - 21 / 252),  # C(7,5)/C(10,5)
        (5, 5, 1, 1.0),
    ],
)
def test_pass_at_k_known_values(n: int, c: int, k: int, expected: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(expected, abs=1e-15)


def test_pass_at_k_is_the_share_of_draws_with_a_correct_sample() -> None:
    for n in range(1, 7):
        for c in range(n + 1):
            for k in range(1, n + 1):
                draws = list(combinations([True] * c + [False] * (n - c), k))
                assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_pass_at_k_of_large_numbers_stays_finite() -> None:
    exact = 1 - math.comb(99_990, 1000) / math.comb(100_000, 1000)
    assert pass_at_k(100_000, 10, 1000) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(("n", "c", "k"), [(0, 0, 1), (3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4)])
def test_pass_at_k_refuses_the_impossible(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="pass@k"):
        pass_at_k(n, c, k)


def test_geometric_mean() -> None:
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)
    assert geometric_mean([1.0, 2.0, 4.0]) == pytest.approx(2.0)
    assert geometric_mean([1e300, 1e300]) == pytest.approx(1e300)  # a product would overflow


@pytest.mark.parametrize("values", [[], [1.0, 0.0], [1.0, -2.0], [math.nan], [math.inf]])
def test_geometric_mean_refuses(values: list[float]) -> None:
    with pytest.raises(ValueError):
        geometric_mean(values)


def test_bootstrap_is_deterministic_and_encloses_the_estimate() -> None:
    values = [1.0, 1.5, 2.0, 2.5, 3.0, 10.0]
    one = bootstrap_interval(values, lambda x: float(x.mean()), seed=3)
    two = bootstrap_interval(values, lambda x: float(x.mean()), seed=3)
    assert one == two
    assert one.low < one.value < one.high
    assert one.value == pytest.approx(20 / 6)
    few = [bootstrap_interval(values, lambda x: float(x.mean()), resamples=50, seed=s) for s in (3, 4)]
    assert few[0] != few[1]


def test_bootstrap_of_a_mean_matches_the_normal_interval() -> None:
    values = np.random.default_rng(0).normal(5.0, 2.0, size=400)
    found = bootstrap_interval(list(values), lambda x: float(x.mean()), resamples=4000)
    half = 1.96 * values.std() / math.sqrt(400)
    assert found.high - found.low == pytest.approx(2 * half, rel=0.06)


def test_bootstrap_of_one_value_has_no_width() -> None:
    found = bootstrap_interval([2.0], lambda x: float(x.mean()))
    assert (found.low, found.value, found.high) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    ("n", "low", "high"),
    [
        (1, 1, 1),
        (5, 1, 5),  # 1 - 2/32 = 0.9375 < 0.95: min to max all the same
        (6, 1, 6),  # 1 - 2/64 = 0.969
        (8, 1, 8),  # j = 2: 1 - 2*9/256 = 0.930 < 0.95
        (9, 2, 8),  # j = 2: 1 - 2*10/512 = 0.961
        (20, 6, 15),  # the textbook's table: 6th and 15th of 20
        (100, 40, 61),
    ],
)
def test_median_interval_ranks(n: int, low: int, high: int) -> None:
    shuffled = np.random.default_rng(n).permutation(np.arange(1, n + 1)).astype(float)
    found = median_interval(list(shuffled))
    assert (found.low, found.high) == (low, high)
    assert found.value == (n + 1) / 2


def test_median_interval_covers_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    hits = 0
    for _ in range(2000):
        found = median_interval(list(random.exponential(size=25)))
        hits += found.low <= math.log(2.0) <= found.high
    # 25 samples: ranks 8 and 18, coverage 0.957; four standard errors of 2000 draws are 0.018.
    assert 0.938 < hits / 2000 < 0.976


def test_median_interval_of_very_many_samples_does_not_underflow() -> None:
    found = median_interval([float(i) for i in range(5001)])
    # 2500 -+ 1.96 * sqrt(5001) / 2 = 2500 -+ 69.3
    assert found.low == pytest.approx(2500 - 69.3, abs=1.5)
    assert found.high == pytest.approx(2500 + 69.3, abs=1.5)


def test_ratio_of_medians_value_and_determinism() -> None:
    found = ratio_of_medians([2.0, 2.1, 1.9], [1.0, 1.05, 0.95])
    assert found.value == pytest.approx(2.0)
    assert found.low <= 2.0 <= found.high
    assert found == ratio_of_medians([2.0, 2.1, 1.9], [1.0, 1.05, 0.95])


def test_pairs_cancel_a_common_drift() -> None:
    drift = np.linspace(1.0, 3.0, 41)
    paired = ratio_of_medians(list(2.0 * drift), list(drift))
    assert paired.low == pytest.approx(2.0)
    assert paired.high == pytest.approx(2.0)
    apart = ratio_of_medians(list(2.0 * drift), list(drift[:-1]))
    assert apart.high - apart.low > 0.2


def test_ratio_of_medians_in_blocks_matches_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    baseline, candidate = list(random.uniform(1, 2, 30)), list(random.uniform(1, 2, 17))
    whole = ratio_of_medians(baseline, candidate, resamples=500)
    monkeypatch.setattr("hkbench.stats._CHUNK", 100)
    assert ratio_of_medians(baseline, candidate, resamples=500) == whole


@pytest.mark.parametrize(("baseline", "candidate"), [([], [1.0]), ([1.0], [0.0]), ([math.nan], [1.0])])
def test_ratio_of_medians_refuses(baseline: list[float], candidate: list[float]) -> None:
    with pytest.raises(ValueError):
        ratio_of_medians(baseline, candidate)


def test_fast_p() -> None:
    speedups = [0.5, 1.0, 1.2, 3.0]
    assert fast_p(speedups, 8, 0) == 0.5
    assert fast_p(speedups, 8, 0.5) == 3 / 8
    assert fast_p(speedups, 8, 1) == 2 / 8  # strict: exactly 1.0 is not above 1
    assert fast_p(speedups, 8, 2) == 1 / 8
    assert fast_p([], 3, 0) == 0.0


def test_fast_p_refuses_more_correct_than_there_are() -> None:
    with pytest.raises(ValueError):
        fast_p([1.0, 2.0], 1, 0)
    with pytest.raises(ValueError):
        fast_p([], 0, 0)


@pytest.mark.parametrize(("n", "t"), [(6, 2.5706), (10, 2.2622), (40, 2.0227)])
def test_the_expanded_confidence_is_students(n: int, t: float) -> None:
    tail = NormalDist().cdf(-t * (n / (n - 1)) ** 0.5)
    assert expanded_confidence(n) == pytest.approx(1.0 - 2.0 * tail, abs=2e-4)


def test_the_expanded_confidence_of_many_is_the_one_asked_for() -> None:
    assert expanded_confidence(100_000) == pytest.approx(0.95, abs=1e-5)
    with pytest.raises(ValueError, match="at least three"):
        expanded_confidence(2)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_best_of_k_is_the_mean_over_all_subsets(k: int) -> None:
    values = [0.3, -1.0, 2.5, 0.3]
    subsets = [max(chosen) for chosen in combinations(values, k)]
    assert best_of_k(values, k) == pytest.approx(sum(subsets) / len(subsets))


def test_best_of_k_of_successes_is_pass_at_k() -> None:
    assert best_of_k([1.0] * 3 + [0.0] * 7, 5) == pytest.approx(pass_at_k(10, 3, 5))
    assert best_of_k([0.0] * 600 + [1.0] * 400, 500) == pytest.approx(1.0)


@pytest.mark.parametrize("k", [0, 3])
def test_best_of_k_refuses_a_k_outside_of_the_values(k: int) -> None:
    with pytest.raises(ValueError, match="best of k"):
        best_of_k([1.0, 2.0], k)


def test_share_interval_by_hand() -> None:
    # Wilson for 7 of 8: p = 0.875, z^2 = 3.8415
    found = share_interval(7, 8)
    assert (found.value, found.low, found.high) == pytest.approx((0.875, 0.5291, 0.9776), abs=1e-4)


def test_share_interval_has_a_width_at_the_ends() -> None:
    none, every = share_interval(0, 10), share_interval(10, 10)
    assert (none.low, none.high) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert (every.low, every.high) == pytest.approx((0.7225, 1.0), abs=1e-4)
    with pytest.raises(ValueError, match="share"):
        share_interval(1, 0)
