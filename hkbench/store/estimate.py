"""How much of a run is left."""

from __future__ import annotations

from collections.abc import Collection

from hkbench.records import RunConfig
from hkbench.store.samples import ProblemState


def samples_left(config: RunConfig, problems: Collection[ProblemState]) -> float:
    """Estimate the samples that are still to be judged; 0 where all problems are closed.

    An open problem needs at least the rest of its attempt. Beyond that it is expected to need as many samples as the
    finished problems that needed more than it has: success ends a problem early. Before a problem is finished, every
    attempt is expected.
    """
    finished = [problem.judged for problem in problems if problem.closed and problem.judged]
    return sum(_needed(config, problem, finished) for problem in problems if problem.open)


def _needed(config: RunConfig, problem: ProblemState, finished: list[int]) -> float:
    """Return the samples that one open problem still needs."""
    rest = float(_rest_of_attempt(config, problem))
    if not finished:
        return max(config.attempts * config.samples - problem.judged, rest)
    longer = [judged for judged in finished if judged > problem.judged]
    usual = sum(longer) / len(longer) - problem.judged if longer else 0.0
    return max(usual, rest)


def _rest_of_attempt(config: RunConfig, problem: ProblemState) -> int:
    """Count the samples without a verdict of the latest attempt, or of the next one where that is judged."""
    attempt = max(problem.tally.widest, default=1)
    rest = max(config.samples, problem.tally.widest.get(attempt, 0)) - problem.tally.judged_of[attempt]
    if rest > 0:
        return rest
    ends = (problem.solved and config.strategy.ends_early) or attempt >= config.attempts
    return 0 if ends else config.samples
