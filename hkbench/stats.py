"""Estimators and their intervals. Pure functions of numbers; every random one takes its seed.

A wrong argument (an empty sample, a value that is not a finite number, k outside 1..n) is a `ValueError`:
it is a mistake of the caller, never of a candidate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist

import numpy as np
from numpy.random import default_rng  # numpy loads it when it is first asked for: here, before the fork
from numpy.typing import NDArray

from hkbench.records import Interval

Floats = NDArray[np.float64]

RESAMPLES = 2000
CONFIDENCE = 0.95
_NORMAL_975 = 1.959963984540054  # the 97.5 % quantile of the standard normal distribution
_CHUNK = 2_000_000  # numbers resampled at a time, to bound the memory (16 MB of indices)


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that at least one of k samples is correct, from c correct ones among n drawn.

    The unbiased estimator 1 - C(n-c, k) / C(n, k) of Chen et al., "Evaluating Large Language Models Trained
    on Code" (2021), eq. 1, as the product 1 - prod_{i=n-c+1..n} (1 - k/i): no large binomial is formed.
    """
    if n < 1 or not 0 <= c <= n or not 1 <= k <= n:
        raise ValueError(f"pass@k needs 0 <= c <= n and 1 <= k <= n, not n={n}, c={c}, k={k}")
    if n - c < k:  # fewer wrong samples than draws: one draw must be correct
        return 1.0
    miss = 1.0
    for i in range(n - c + 1, n + 1):
        miss *= 1.0 - k / i
    return 1.0 - miss


def best_of_k(values: Sequence[float], k: int) -> float:
    """Return the mean of the largest of k values drawn without replacement from n: what keeping the best of k comes to.

    sum_{i=k..n} x_(i) C(i-1, k-1) / C(n, k) with x_(i) the i-th smallest: in so many of the C(n, k) subsets it is the
    largest. With values of 0 and 1 it is `pass_at_k`.
    """
    data = np.sort(_checked(values, "best of k"))
    n = int(data.size)
    if not 1 <= k <= n:
        raise ValueError(f"the best of k needs 1 <= k <= n, not n={n}, k={k}")
    whole = math.comb(n, k)
    return math.fsum(float(data[i - 1]) * (math.comb(i - 1, k - 1) / whole) for i in range(k, n + 1))


def share_interval(count: int, total: int) -> Interval:
    """Return count / total with the 95 % score interval of Wilson, "Probable inference" (1927).

    (p + z^2/2n -+ z sqrt(p (1-p) / n + z^2/4n^2)) / (1 + z^2/n) with z = 1.96: it stays inside of 0..1, and has a width
    where all or none succeeded. The trials are taken as independent, and as a sample of more of their kind.
    """
    if total < 1 or not 0 <= count <= total:
        raise ValueError(f"a share needs 0 <= count <= total and total >= 1, not {count} of {total}")
    share, square = count / total, _NORMAL_975**2
    middle = share + square / (2 * total)
    half = _NORMAL_975 * math.sqrt(share * (1.0 - share) / total + square / (4 * total * total))
    scale = 1.0 + square / total
    return Interval(value=share, low=max(0.0, (middle - half) / scale), high=min(1.0, (middle + half) / scale))


def geometric_mean(values: Sequence[float] | Floats) -> float:
    """Return exp(mean(log x)): the mean for ratios, in which 2x and 0.5x cancel. All values must be positive."""
    data = _checked(values, "geometric mean")
    if data.min() <= 0.0:
        raise ValueError(f"the geometric mean needs positive values, not {data.min()}")
    return float(np.exp(np.log(data).mean()))


def bootstrap_interval(
    values: Sequence[float],
    statistic: Callable[[Floats], float],
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Return `statistic` of the values with a percentile bootstrap interval (Efron 1979) over resamples.

    The same values, seed and `resamples` give the same interval. Of one value the interval has no width,
    which says nothing of its certainty: the caller decides whether to show it.
    """
    data = _checked(values, "bootstrap")
    estimates = np.fromiter(
        (statistic(data[rows]) for block in _resampled(data.size, resamples, seed) for rows in block),
        dtype=np.float64,
        count=resamples,
    )
    return _percentiles(statistic(data), estimates, confidence)


def expanded_confidence(n: int) -> float:
    """Return the confidence to ask `bootstrap_interval` for, so that the interval of a mean of n values is wide enough.

    A percentile interval of few values is too narrow: it takes their spread as known. The expanded one takes the
    quantiles at Phi(-sqrt(n / (n - 1)) t) in place of (1 - CONFIDENCE) / 2, with t of n - 1 degrees of freedom
    (Hesterberg, "What Teachers Should Know About the Bootstrap" (2015), section 4.3); t by the expansion of Abramowitz
    and Stegun, 26.7.5, which is 0.1 % off at n = 6. Three values are the least.
    """
    if n < 3:
        raise ValueError(f"an expanded interval needs at least three values, not {n}")
    normal = NormalDist()
    z, free = normal.inv_cdf((1.0 + CONFIDENCE) / 2.0), n - 1
    t = z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
    t += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * free**3)
    return 1.0 - 2.0 * normal.cdf(-math.sqrt(n / free) * t)


def median_interval(samples: Sequence[float]) -> Interval:
    """Return the median with a distribution-free interval between two order statistics.

    The j-th smallest and the j-th largest of n independent samples enclose the true median with probability
    1 - 2 P(Binomial(n, 1/2) < j), whatever the distribution (David and Nagaraja, "Order Statistics", 7.1).
    j is the largest for which that is at least 95 %. Below six samples there is none: the
    interval is then min to max, and holds the median less often than asked.
    """
    data = np.sort(_checked(samples, "median"))
    n = int(data.size)
    j = max(1, _outer_rank(n, (1.0 - CONFIDENCE) / 2.0))
    return Interval(value=float(np.median(data)), low=float(data[j - 1]), high=float(data[n - j]))


def ratio_of_medians(baseline: Sequence[float], candidate: Sequence[float], *, resamples: int = RESAMPLES) -> Interval:
    """Return median(baseline) / median(candidate) of positive times, with a percentile bootstrap interval.

    Samples of equal number are taken as pairs measured in turn, and resampled as pairs: a drift of the clock
    that slows both sides then cancels. Otherwise each side is resampled on its own.
    """
    above, below = _checked(baseline, "baseline"), _checked(candidate, "candidate")
    if above.min() <= 0.0 or below.min() <= 0.0:
        raise ValueError("a ratio of medians needs positive times")
    paired = above.size == below.size
    top = _resampled(above.size, resamples, 0)
    bottom = _resampled(below.size, resamples, 0 if paired else 1)
    # Blocks of the two sides differ in length when their samples do; joining the medians first aligns them.
    numerators = np.concatenate([np.median(above[rows], axis=1) for rows in top])
    denominators = np.concatenate([np.median(below[rows], axis=1) for rows in bottom])
    value = float(np.median(above) / np.median(below))
    return _percentiles(value, numerators / denominators, CONFIDENCE)


def fast_p(speedups_of_correct: Sequence[float], total: int, p: float) -> float:
    """Return the share of all `total` problems that are correct and have a speed-up above p.

    fast_p = 1/N sum_i 1(correct_i and speed-up_i > p) of Ouyang et al., "KernelBench" (2025), section 3.3.
    With p = 0 it is the share of correct problems. `speedups_of_correct` has one value a correct problem.
    The comparison is strict, as published: a speed-up of exactly 1.0 is fast in a verdict, but not in fast_1.
    """
    if total < 1 or len(speedups_of_correct) > total:
        raise ValueError(f"fast_p of {len(speedups_of_correct)} correct problems among {total}")
    if p == 0:
        return len(speedups_of_correct) / total
    return sum(1 for speedup in speedups_of_correct if speedup > p) / total


def _checked(values: Sequence[float] | Floats, what: str) -> Floats:
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1 or data.size == 0:
        raise ValueError(f"{what}: needs a non-empty list of numbers")
    if not np.isfinite(data).all():
        raise ValueError(f"{what}: a value is not a finite number")
    return data


def _resampled(n: int, resamples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield rows of n indices drawn with replacement, in blocks of bounded size."""
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, not {resamples}")
    random = default_rng(seed)
    left = resamples
    while left:
        rows = min(left, max(1, _CHUNK // n))
        yield random.integers(0, n, size=(rows, n))
        left -= rows


def _percentiles(value: float, estimates: Floats, confidence: float) -> Interval:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"a confidence lies between 0 and 1, not {confidence}")
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(estimates, (tail, 1.0 - tail))
    return Interval(value=float(value), low=float(low), high=float(high))


def _outer_rank(n: int, tail: float) -> int:
    """Return the largest j with P(Binomial(n, 1/2) < j) <= tail; 0 when even j = 1 exceeds it."""
    below = 0.0
    for i in range(n):
        # In logs: 2**-n alone underflows beyond n = 1074.
        log_mass = math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) - n * math.log(2.0)
        below += math.exp(log_mass)
        if below > tail:
            return i
    return n


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the others are at most as large as. Raises IndexError without values."""
    return sorted(values)[int(share * (len(values) - 1))]
