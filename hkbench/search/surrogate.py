"""A Gaussian process over the features of states: what an unmeasured one is expected to improve on the best.

Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 2.1; expected improvement of Jones
et al. (1998), eq. 15. Times are taken in log and cut off at their median: how bad a bad state is says little of where
the good ones lie.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SCALES = (0.4, 0.7, 1.4, 2.5)  #: factors by which a length scale is tried
MIN_SCALE, MAX_SCALE = 0.05, 5.0  #: of features that lie between 0 and 1
NOISES = (1e-3, 1e-2, 1e-1)  #: variances of what the features do not tell, over that of the times
FIRST_FIT = 8  #: states from which the scales are fitted, and then whenever there are 15 % and three more


class Surrogate:
    """Length scales are kept from one fit to the next; `improvements` is what a search asks for."""

    def __init__(self, dimensions: int) -> None:
        self._scales: Floats = np.full(dimensions, 0.5)
        self._noise = 1e-2
        self._next_fit = FIRST_FIT

    def improvements(self, seen: Floats, times: Floats, open_: Floats) -> Floats:
        """Return the expected improvement of each open state, in log seconds.

        Args:
            seen: features of the states that were measured, (n, d).
            times: their log seconds, NaN where one failed, (n,).
            open_: features of those to choose among, (m, d).
        """
        low = np.minimum(seen.min(axis=0), open_.min(axis=0))
        width = np.maximum(seen.max(axis=0), open_.max(axis=0)) - low
        width = np.where(width > 0.0, width, 1.0)
        inputs, asked = (seen - low) / width, (open_ - low) / width
        middle = float(np.nanmedian(times))
        cut = np.minimum(np.where(np.isnan(times), middle, times), middle)
        deviation = float(cut.std())
        unit = deviation if deviation > 0.0 else 1.0
        targets = (cut - cut.mean()) / unit
        self._fit(inputs, targets)
        lower, whitened, scale = _factor(squared_distances(inputs, inputs, self._scales), targets, self._noise)
        inverse = np.linalg.inv(lower)
        cross = matern(squared_distances(asked, inputs, self._scales))
        mean = cross @ (inverse.T @ whitened)
        left = 1.0 - np.square(cross @ inverse.T).sum(axis=1)
        return unit * expected_improvement(mean, np.sqrt(np.maximum(scale * left, 1e-9)), float(targets.min()))

    def _fit(self, inputs: Floats, targets: Floats) -> None:
        """Improve the scales one at a time, by the marginal likelihood with a prior around 0.5."""
        if len(targets) < self._next_fit:
            return
        self._next_fit = int(len(targets) * 1.15) + 3
        squares = np.square(inputs[:, None, :] - inputs[None, :, :]).transpose(2, 0, 1)
        total = np.tensordot(1.0 / np.square(self._scales), squares, axes=1)
        best = _loss(total, targets, self._scales, self._noise)
        for dimension, own in enumerate(squares):
            for factor in SCALES:
                scales = self._scales.copy()
                scales[dimension] = min(max(scales[dimension] * factor, MIN_SCALE), MAX_SCALE)
                changed = total + own * (scales[dimension] ** -2 - self._scales[dimension] ** -2)
                loss = _loss(changed, targets, scales, self._noise)
                if loss < best:
                    best, self._scales, total = loss, scales, changed
        for noise in NOISES:
            loss = _loss(total, targets, self._scales, noise)
            if loss < best:
                best, self._noise = loss, noise


def _loss(squares: Floats, targets: Floats, scales: Floats, noise: float) -> float:
    lower, _, scale = _factor(squares, targets, noise)
    fit = 0.5 * len(targets) * math.log(scale) + float(np.log(np.diag(lower)).sum())
    return fit + 0.5 * float(np.square(np.log(scales / 0.5)).sum())


def _factor(squares: Floats, targets: Floats, noise: float) -> tuple[Floats, Floats, float]:
    """Return the Cholesky factor, the targets whitened by it, and the variance that fits them best."""
    covariance = matern(squares)
    covariance[np.diag_indices(len(targets))] += noise
    lower = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    whitened = np.asarray(np.linalg.solve(lower, targets), dtype=np.float64)
    return lower, whitened, max(float(whitened @ whitened) / len(targets), 1e-6)


def squared_distances(left: Floats, right: Floats, scales: Floats) -> Floats:
    """Return those between two sets of points, (n, d) and (m, d) to (n, m), each feature over its scale."""
    one, two = left / scales, right / scales
    squares = np.square(one).sum(axis=1)[:, None] + np.square(two).sum(axis=1)[None, :] - 2.0 * (one @ two.T)
    return np.asarray(np.maximum(squares, 0.0), dtype=np.float64)


def matern(squares: Floats) -> Floats:
    """Return the Matern covariance of smoothness 3/2 at squared distances."""
    distance = np.sqrt(3.0 * np.maximum(squares, 0.0))
    result: Floats = (1.0 + distance) * np.exp(-distance)
    return result


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Return E[max(best - y, 0)] of normal y."""
    z = (best - mean) / deviation
    # The normal distribution function by Abramowitz and Stegun, 26.2.17: off by at most 7.5e-8.
    t = 1.0 / (1.0 + 0.2316419 * np.abs(z))
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    poly = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    upper = density * poly
    below = np.where(z >= 0.0, 1.0 - upper, upper)
    return np.asarray((best - mean) * below + deviation * density, dtype=np.float64)
