from __future__ import annotations

import math

import pytest

from hkbench.monitor.words import count, duration, si_interval, si_seconds
from hkbench.records import Interval


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.6, "1 min 00 s"), (187, "3 min 07 s"), (7440, "2 h 04 min")],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.5, "2.5 s"), (1.234e-3, "1.23 ms"), (4.5e-6, "4.5 µs"), (3e-9, "3 ns"), (0.0, "0 ns"), (math.nan, "nan ns")],
)
def test_si_seconds(seconds: float, text: str) -> None:
    assert si_seconds(seconds) == text


def test_si_interval() -> None:
    assert si_interval(Interval(value=1e-3, low=9e-4, high=2e-3)) == "1 ms [900 µs, 2 ms]"


@pytest.mark.parametrize(
    ("value", "text"), [(None, "?"), (0, "0"), (999, "999"), (12345, "12.3k"), (1_234_567, "1.23M")]
)
def test_count(value: int | None, text: str) -> None:
    assert count(value) == text
