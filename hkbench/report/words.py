"""Figures and outcomes in words, the same in every report."""

from __future__ import annotations

from hkbench.report.model import Estimate, ProblemReport, TokenCount

UNKNOWN = "-"


def outcome(problem: ProblemReport) -> str:
    """What became of a problem; a star marks one that is not finished."""
    if problem.solved:
        word = "solved"
    elif problem.correct:
        word = "slow"
    elif problem.refused_samples:
        word = "refused"
    elif problem.judged:
        word = "failed"
    elif problem.compiled:
        word = "built only"
    else:
        word = "not judged"
    return word if problem.state == "finished" else f"{word}*"


def share_of(part: int, total: int) -> str:
    return f"{part} of {total} judged problems" + (f", {percent(part / total)}" if total else "")


def percent(value: float | None) -> str:
    return UNKNOWN if value is None else f"{100 * value:.1f} %"


def fast_p(found: dict[str, float] | None) -> str:
    return UNKNOWN if found is None else ", ".join(f"p={p}: {percent(x)}" for p, x in found.items())


def ratio(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3g}x"


def estimate(found: Estimate | None) -> str:
    """A speed-up with its 95 % interval, where there is one."""
    if found is None:
        return UNKNOWN
    if found.low is None or found.high is None:
        return f"{found.value:.3g}x"
    return f"{found.value:.3g}x [{found.low:.3g}, {found.high:.3g}]"


def count(found: TokenCount) -> str:
    """Tokens; a plus where some replies did not say."""
    if found.total is None:
        return UNKNOWN
    return f"{found.total:,}" + ("+" if found.unreported_replies else "")


def duration(value: float | None) -> str:
    """Seconds, as a person says them."""
    if value is None:
        return UNKNOWN
    if value < 60:
        return f"{value:.1f} s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s"


def kernel_time(value: float | None) -> str:
    """A kernel's time with the unit that fits it."""
    if value is None:
        return UNKNOWN
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"
