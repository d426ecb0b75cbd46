"""Figures as people read them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Return a short duration: "5 s", "3 min 07 s", "2 h 04 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def count(value: int | None) -> str:
    """Return three digits and a letter: "950", "12.3k", "1.23M"; "?" where the number is not known."""
    if value is None:
        return "?"
    if value < 1000:
        return str(value)
    scale, letter = next(pair for pair in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if value >= pair[0])
    return f"{value / scale:.3g}{letter}"


def gibibytes(value: int | None) -> str:
    """Return bytes as GiB: "12.3" below a hundred, else "139"; "?" where the number is not known."""
    if value is None:
        return "?"
    found = value / (1 << 30)
    return f"{found:.1f}" if found < 99.95 else f"{found:.0f}"
