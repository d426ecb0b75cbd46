"""What a comparison comes to in sentences and cells: the same in the terminal, on the page and as data."""

from __future__ import annotations

from hkbench.headline import plural
from hkbench.records import Status, outcome_of
from hkbench.report.comparison import MIN_PROBLEMS, Paired, Part, Settled
from hkbench.report.format import estimate, percent, ratio
from hkbench.report.model import Estimate


def conclusion(solved: Paired, speedup: Paired | None, run: str, first: str) -> str:
    """Return one sentence: what the figures settle, and over how many problems.

    `run`, `first`: what the runs are called.
    """
    return f"{_solved_words(solved, run, first)}; {_speed_words(speedup, run, first)}."


def paired_rows(part: Part, run: str) -> list[tuple[str, str, str, str, Paired]]:
    """Return each paired figure: its name, its value in A and in `run`, the difference, and what they come from."""
    rows = [
        (name, f"{a} of {part.a.problems}", f"{b} of {part.b.problems}", points(found.difference), found)
        for name, a, b, found in (
            ("solved", part.a.solved, part.b.solved, part.solved),
            ("correct", part.a.correct, part.b.correct, part.correct),
        )
    ]
    shares = {f"fast_p, p={p}": found for p, found in part.fast_p.items()}
    shares |= {f"pass@{k}": found for k, found in part.pass_at_k.items()}
    rows += [(name, percent(one.a), percent(one.b), points(one.difference), one) for name, one in shares.items()]
    if (speed := part.speedup) is not None:
        name, difference = f"speed-up, {speed.problems} correct in both", f"{estimate(speed.difference)} ({run} / A)"
        rows.append((name, ratio(speed.a), ratio(speed.b), difference, speed))
    return rows


def outcome(speedup: Estimate | None) -> str:
    """Return what became of a judged problem in one run, by its best speed-up."""
    if speedup is None:
        return "not correct"
    status = Status.FAST if speedup.value >= 1.0 else Status.SLOW
    return f"{outcome_of(status, speedup.value, speedup.low, speedup.high).label} {estimate(speedup)}"


def points(found: Estimate) -> str:
    """Return a difference of shares."""
    value = f"{100 * found.value:+.1f} points"
    if found.low is None or found.high is None:
        return value
    return f"{value} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def _solved_words(found: Paired, run: str, first: str) -> str:
    if found.differ == 0:
        return f"Of {plural(found.problems, 'problem')} {first} and {run} solve the same ones"
    said = f"{points(found.difference)} in solved problems over {plural(found.problems, 'problem')}"
    if found.settled is Settled.OPEN:
        return f"Whether {first} or {run} solves more is not settled: {said}, {_why_open(found, '0')}"
    word = "more" if found.settled is Settled.BETTER else "fewer"
    return f"{run} solves {word}: {said}, an interval that leaves out 0"


def _speed_words(found: Paired | None, run: str, first: str) -> str:
    if found is None:
        return "no problem is correct in both, so nothing is said of speed"
    where = (
        f"{estimate(found.difference)} of {first}'s speed-up over {plural(found.problems, 'problem')} correct in both"
    )
    if found.differ == 0:
        return f"their speed-ups are the same over {plural(found.problems, 'problem')} correct in both"
    if found.settled is Settled.OPEN:
        return f"whose kernels are faster is not settled: {run} has {where}, {_why_open(found, '1')}"
    word = "faster" if found.settled is Settled.BETTER else "slower"
    return f"{run}'s kernels are {word}: {where}, an interval that leaves out 1"


def _why_open(found: Paired, none: str) -> str:
    if found.differ < MIN_PROBLEMS:
        return f"and fewer than {MIN_PROBLEMS} problems differ"
    return f"an interval that holds {none}"
