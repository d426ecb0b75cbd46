"""What a verdict, and a problem by its best sample, comes to: one class, one name, one sign and one colour everywhere.

The classes go by the 95 % interval of the speed-up, so that a measurement which cannot tell the two sides apart is not
counted as a win. `Status`, exit codes and "solved" go by the estimate alone: correct, speed-up of at least 1.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from hkbench.records.verdict import Status


class Outcome(StrEnum):
    """Members are ordered from best to worst; reports and displays list them in this order."""

    FASTER = "faster"  #: correct, and the whole interval of the speed-up is above 1
    ON_PAR = "on_par"  #: correct, and the interval contains 1
    SLOWER = "slower"  #: correct, and the whole interval is below 1
    WRONG = "wrong"  #: failed at any stage: `Status.INCORRECT`
    REFUSED = "refused"  #: right answers that do not count: `Status.REFUSED`
    COMPILED = "compiled"  #: built and never run (a run of --build-only)
    NOT_JUDGED = "not_judged"  #: no verdict

    @property
    def label(self) -> str:
        """The name in prose: "on a par"."""
        return _LOOKS[self][0]

    @property
    def sign(self) -> str:
        """One character, different for each class."""
        return _LOOKS[self][1]

    @property
    def style(self) -> str:
        """The colour on a terminal, as rich names it; report.html has a CSS variable of the same hue."""
        return _LOOKS[self][2]


_LOOKS = {
    Outcome.FASTER: ("faster", "+", "green"),
    Outcome.ON_PAR: ("on a par", "=", "cyan"),
    Outcome.SLOWER: ("slower", "-", "yellow"),
    Outcome.WRONG: ("wrong", "×", "red"),
    Outcome.REFUSED: ("refused", "!", "magenta"),
    Outcome.COMPILED: ("compiled", "c", "blue"),
    Outcome.NOT_JUDGED: ("not judged", "?", "bright_black"),
}

CORRECT = (Outcome.FASTER, Outcome.ON_PAR, Outcome.SLOWER)
#: Classes of a problem without a correct sample, the most telling first.
_OTHERWISE = (Outcome.REFUSED, Outcome.COMPILED, Outcome.WRONG)


def outcome_of(
    status: Status | None, speedup: float | None = None, low: float | None = None, high: float | None = None
) -> Outcome:
    """Classify a sample. `low` and `high` are the 95 % interval of `speedup`; `status` is `None` without a verdict.

    A correct sample whose record has no interval (a journal of an older version) is classified by its estimate.
    """
    match status:
        case None:
            return Outcome.NOT_JUDGED
        case Status.INCORRECT:
            return Outcome.WRONG
        case Status.REFUSED:
            return Outcome.REFUSED
        case Status.COMPILED:
            return Outcome.COMPILED
        case Status.FAST | Status.SLOW:
            if speedup is None:
                raise ValueError("a correct sample has a speed-up")
            if (low if low is not None else speedup) > 1.0:
                return Outcome.FASTER
            return Outcome.SLOWER if (high if high is not None else speedup) < 1.0 else Outcome.ON_PAR


def problem_outcome(samples: Iterable[tuple[Outcome, float | None]]) -> Outcome:
    """Classify a problem by its samples, each with its class and speed-up: the class of the fastest correct sample.

    Without a correct sample a problem is refused if any sample was, else compiled, else wrong.
    """
    found = list(samples)
    correct = [(speedup, outcome) for outcome, speedup in found if outcome in CORRECT and speedup is not None]
    if correct:
        return max(correct, key=lambda pair: pair[0])[1]
    seen = {outcome for outcome, _ in found}
    return next((outcome for outcome in _OTHERWISE if outcome in seen), Outcome.NOT_JUDGED)
