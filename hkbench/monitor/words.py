"""Figures as people read them."""

from __future__ import annotations

from hkbench.records import Interval

_PREFIXES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def duration(seconds: float) -> str:
    """Short: "5 s", "3 min 07 s", "2 h 04 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def si_seconds(value: float) -> str:
    """Three digits with a prefix: "1.23 ms"."""
    scale, unit = next((pair for pair in _PREFIXES if abs(value) >= pair[0]), _PREFIXES[-1])
    return f"{value / scale:.3g} {unit}"


def si_interval(interval: Interval) -> str:
    """ "1.23 ms [1.20 ms, 1.30 ms]"."""
    return f"{si_seconds(interval.value)} [{si_seconds(interval.low)}, {si_seconds(interval.high)}]"


def count(value: int | None) -> str:
    """Three digits and a letter: "950", "12.3k", "1.23M"; "?" where it is not known."""
    if value is None:
        return "?"
    if value < 1000:
        return str(value)
    scale, letter = next(pair for pair in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if value >= pair[0])
    return f"{value / scale:.3g}{letter}"


def gibibytes(value: int | None) -> str:
    """Bytes as "12.3" below a hundred GiB, else "139"; "?" where it is not known."""
    if value is None:
        return "?"
    found = value / (1 << 30)
    return f"{found:.1f}" if found < 99.95 else f"{found:.0f}"
