from __future__ import annotations

import math

import pytest

from hkbench.records import Interval
from hkbench.store.figures import interval, kernel_interval, kernel_time, speedup, speedup_interval


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0914, "0.091x"),
        (0.0996, "0.10x"),
        (1.0, "1.00x"),
        (2.6, "2.60x"),
        (9.994, "9.99x"),
        (9.996, "10.0x"),
        (13.39, "13.4x"),
        (99.96, "100x"),
        (1234.5, "1234x"),
        (math.inf, "infx"),
        (math.nan, "nanx"),
    ],
)
def test_speedup(value: float, text: str) -> None:
    assert speedup(value) == text


def test_an_interval_has_the_digits_of_its_ends() -> None:
    assert interval(0.0356, 15.12) == "[0.036, 15.1]"
    assert speedup_interval(2.484, 0.96, 5.528) == "2.48x [0.96, 5.53]"


def test_a_speedup_without_an_interval_stands_alone() -> None:
    assert speedup_interval(2.0, None, None) == "2.00x"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.5, "2.50 s"), (1.234e-3, "1.23 ms"), (4.5e-6, "4.50 µs"), (3e-9, "3.00 ns"), (9.9996e-4, "1.00 ms"),
     (0.0, "0.00 ns"), (math.nan, "nan ns")],
)  # fmt: skip
def test_kernel_time(seconds: float, text: str) -> None:
    assert kernel_time(seconds) == text


def test_kernel_interval() -> None:
    assert kernel_interval(Interval(value=1e-3, low=9e-4, high=2e-3)) == "1.00 ms [900 µs, 2.00 ms]"
