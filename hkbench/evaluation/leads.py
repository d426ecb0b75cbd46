"""How much later inputs are in place for the candidate than for the baseline, on a GPU.

A call's time by the evaluator's clock runs from before its inputs are written, and what a call costs by itself is that
of the baseline's null calls. Each side has memory of its own, and not all of a GPU's is equally quick to write: between
two processes 4 us of 560 were seen on an H200, and 0.8 % of what a read-only kernel took.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from statistics import median

LEADS = 3  #: of either side, each time that they are compared
#: Share of a call's time up to which it is corrected: who leaves work to a queue that waits for its inputs, to have
#: more taken off, gains no more.
MAX_LATER = 0.01

Lead = Callable[[], float | None]  #: seconds that inputs take to be in place for one side; None without a clock


class Leads:
    """The leads of both sides in one measurement."""

    def __init__(self) -> None:
        self._baseline: list[float] = []
        self._candidate: list[float] = []

    def compare(self, baseline: Lead, candidate: Lead) -> None:
        """Measure both while both runners are stopped, in a drawn order, which nobody can guess.

        The first of all does not count: after a call it takes longer.
        """
        order = [(baseline, self._baseline), (candidate, self._candidate)] * LEADS
        secrets.SystemRandom().shuffle(order)
        if candidate() is None:
            return
        for lead, seconds in order:
            took = lead()
            assert took is not None
            seconds.append(took)

    def later(self, seconds: float) -> float:
        """Return by how many seconds the candidate's inputs are in place later; `seconds`: of the baseline's call."""
        if not self._baseline:
            return 0.0
        most = MAX_LATER * max(0.0, seconds)
        return max(-most, min(most, median(self._candidate) - median(self._baseline)))
