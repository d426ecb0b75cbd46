from __future__ import annotations

import io
import math

from rich.console import Console

from hkbench.monitor.histogram import bins, histogram


def test_every_sample_is_in_a_bin_or_beyond() -> None:
    samples = [1.0 + k / 100 for k in range(99)] + [50.0]
    counts, low, high, beyond = bins(samples, 40)
    assert sum(counts) + beyond == 100
    assert (low, beyond) == (1.0, 5)
    assert high == samples[94]
    assert len(counts) == 20


def test_equal_samples_and_none() -> None:
    assert bins([2.0] * 9, 40)[0][0] == 9
    assert bins([], 40) == ([0], 0.0, 0.0, 0)


def test_it_fits_its_width_and_survives_what_is_not_a_number() -> None:
    console = Console(file=io.StringIO(), width=60, color_system=None)
    with console.capture() as capture:
        console.print(histogram([1e-3, 2e-3, math.nan, math.inf] * 500, 50, "green"))
    lines = capture.get().splitlines()
    assert len(lines) == 5
    assert max(map(len, lines)) <= 60
    assert lines[-1].split() == ["1.00", "ms", "2.00", "ms"]
