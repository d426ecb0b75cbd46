"""Speed-ups and times as every report, screen and message prints them: the same number looks the same everywhere."""

from __future__ import annotations

from hkbench.records import Interval


def speedup(value: float) -> str:
    """Format a speed-up: "0.091x", "0.98x", "2.60x", "13.4x", "124x".

    Two decimals below 10, so that columns line up; one from 10 and none from 100, where more would be noise; three
    below 0.1, where two would hide the digits.
    """
    return f"{_digits(value)}x"


def speedup_interval(value: float, low: float | None, high: float | None) -> str:
    """Format a speed-up with its interval: "2.48x [0.96, 5.53]"; the value alone where there is no interval."""
    return speedup(value) if low is None or high is None else f"{speedup(value)} {interval(low, high)}"


def improvement(before: float | None, after: float) -> str:
    """Say what a speed-up is beside the one before it; `before`: `None` where there was none."""
    if before is None:
        return f"first correct kernel, {speedup(after)}"
    return (
        f"improved {speedup(before)} -> {speedup(after)}" if after > before else f"no improvement on {speedup(after)}"
    )


def interval(low: float, high: float) -> str:
    """Format the interval of a speed-up: "[0.96, 5.53]"."""
    return f"[{_digits(low)}, {_digits(high)}]"


def kernel_time(seconds: float) -> str:
    """Format a kernel's time with three digits and the unit that fits it: "1.00 ms", "33.0 µs"."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size * 0.9995:
            return f"{_three_digits(seconds / size)} {unit}"
    return f"{_three_digits(seconds / 1e-9)} ns"


def kernel_interval(found: Interval) -> str:
    """Format a time with its interval: "1.00 ms [900 µs, 2.00 ms]"."""
    return f"{kernel_time(found.value)} [{kernel_time(found.low)}, {kernel_time(found.high)}]"


def _digits(value: float) -> str:
    # A bound is where the next form begins to print the same number: 9.996 is "10.0", not "10.00".
    if value >= 99.95:
        return f"{value:.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.0995 else f"{value:.3f}"


def _three_digits(value: float) -> str:
    """Return three significant digits, zeros too: "1.00", "33.0", "500"."""
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"
