"""How budgets are said on the command line."""

from __future__ import annotations

import argparse

import pytest

from hkbench.cli.budgets import amount, share, time_span


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90m", 5400.0), ("8h", 28800.0), ("3600s", 3600.0), ("1h30m", 5400.0), ("1d", 86400.0), ("0.5h", 1800.0),
     ("1h 5s", 3605.0)],
)  # fmt: skip
def test_a_time_has_its_unit(text: str, seconds: float) -> None:
    assert time_span(text) == seconds


@pytest.mark.parametrize("text", ["", "90", "0m", "-5m", "m", "5m8h", "1e3s", "8 hours", "inf"])
def test_what_is_not_a_duration(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write 90m, 8h or 3600s"):
        time_span(text)


def test_money_and_shares() -> None:
    assert amount("0.5") == 0.5 and share("0") == 0.0 and share("0.1") == 0.1
    for text in ("0", "-1", "inf", "nan"):
        with pytest.raises(argparse.ArgumentTypeError):
            amount(text)
    for text in ("1", "-0.1", "nan"):
        with pytest.raises(argparse.ArgumentTypeError):
            share(text)
