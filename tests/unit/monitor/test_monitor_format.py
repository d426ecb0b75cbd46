from __future__ import annotations

import pytest

from hkbench.monitor.format import count, duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.6, "1 min 00 s"), (187, "3 min 07 s"), (7440, "2 h 04 min")],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "?"), (0, "0"), (999, "999"), (12345, "12.3k"), (1_234_567, "1.23M")]
)
def test_count(value: int | None, text: str) -> None:
    assert count(value) == text
