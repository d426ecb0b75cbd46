"""How the best kernel of a problem came about: the samples from the start to it, and what each step brought."""

from __future__ import annotations

from dataclasses import dataclass

from hkbench.report.format import estimate, ratio
from hkbench.report.model import AttemptReport, Place, ProblemReport


@dataclass(frozen=True)
class WayStep:
    place: Place
    step: str | None  #: what its attempt is, as the strategy describes it
    speedup: str
    gain: str | None  #: over the sample before it


def way(problem: ProblemReport) -> tuple[WayStep, ...]:
    """Return the samples from the start to the best one; empty where that was made from no other one."""
    attempts = [one for one in problem.attempts if one.led_to_best]
    if len(attempts) < 2 or problem.best_attempt is None or problem.best_sample is None:
        return ()
    best = Place(attempt=problem.best_attempt, sample=problem.best_sample)
    places = [*(one.parent for one in attempts[1:]), best]  # each but the last is the one that the next was made from
    return tuple(
        WayStep(place, attempt.step, _speedup(problem, place), gain_text(attempt))
        for place, attempt in zip(places, attempts, strict=True)
        if place is not None
    )


def gain_text(attempt: AttemptReport) -> str | None:
    """Return what an attempt's best sample brought: "1.12x over 4.1"."""
    if attempt.gain is None or attempt.parent is None:
        return None
    return f"{ratio(attempt.gain)} over {attempt.parent.attempt}.{attempt.parent.sample}"


def _speedup(problem: ProblemReport, place: Place) -> str:
    found = [one for one in problem.samples if (one.attempt, one.sample) == (place.attempt, place.sample)]
    return estimate(found[0].speedup if found else None)
