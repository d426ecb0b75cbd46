"""What a comparison comes to in sentences and cells: the same in the terminal, on the page and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hkbench.records import JudgeSettings, Status, outcome_of
from hkbench.report.compare import LEAST, Comparison, Difference, Outcome, Paired, Part, barred
from hkbench.report.model import Estimate
from hkbench.report.words import estimate

_UNLIKE = (
    "The runs were not measured alike ({}): a speed-up is against the same device's own baseline, and says nothing of "
    "another's."
)
_STRICT = "The runs were not judged alike ({}): what passes in one may fail in the other."
_TRIED = (
    "The runs did not have equally many attempts or samples ({}): more attempts raise a run's best even at equal skill."
)
_TRIES = {"samples", "attempts", "exhaust"}
_NO_VERDICT = {"profile_slow", "profile_timeout", "keep_profile", "prepare_builds"}
_STRICTNESS = {f"judge {name.replace('_', ' ')}" for name in JudgeSettings.model_fields if name not in _NO_VERDICT}


def conclusion(part: Part, run: str = "B", first: str = "A") -> str:
    """One sentence: what the figures settle, and over how many problems. `run`, `first`: what the runs are called."""
    return f"{_solved_words(part.solved, run, first)}; {_speed_words(part.speedup, run, first)}."


def caveats(found: Comparison, run: str | None = None, first: str = "A") -> Iterator[str]:
    """What the settings of the two runs take from the comparison, a sentence each; names as in `conclusion`."""
    for sentence, these in (
        (_UNLIKE, barred(found.differences)),
        (_STRICT, [one for one in found.differences if one.setting in _STRICTNESS]),
        (_TRIED, [one for one in found.differences if one.setting in _TRIES]),
    ):
        if these:
            yield sentence.format(_listed(these, run or found.run, first))


def unlike(found: Sequence[Difference], run: str) -> str:
    """Why speed-ups of the runs say nothing of each other."""
    return _UNLIKE.format(_listed(found, run, "A"))


def _listed(found: Sequence[Difference], run: str, first: str) -> str:
    return "; ".join(f"{one.setting}: {_given(one.a)} in {first}, {_given(one.b)} in {run}" for one in found)


def _given(value: str | None) -> str:
    return "none" if value is None else value


def outcome(speedup: Estimate | None) -> str:
    """What became of a judged problem in one run, by its best speed-up."""
    if speedup is None:
        return "not correct"
    status = Status.FAST if speedup.value >= 1.0 else Status.SLOW
    return f"{outcome_of(status, speedup.value, speedup.low, speedup.high).label} {estimate(speedup)}"


def points(found: Estimate) -> str:
    """A difference of shares."""
    value = f"{100 * found.value:+.1f} points"
    if found.low is None or found.high is None:
        return value
    return f"{value} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def _solved_words(found: Paired, run: str, first: str) -> str:
    if found.differ == 0:
        return f"Of {_problems_word(found.problems)} {first} and {run} solve the same ones"
    said = f"{points(found.difference)} in solved problems over {_problems_word(found.problems)}"
    if found.outcome is Outcome.OPEN:
        return f"Whether {first} or {run} solves more is not settled: {said}, {_why_open(found, '0')}"
    word = "more" if found.outcome is Outcome.BETTER else "fewer"
    return f"{run} solves {word}: {said}, an interval that leaves out 0"


def _speed_words(found: Paired | None, run: str, first: str) -> str:
    if found is None:
        return "no problem is correct in both, so nothing is said of speed"
    where = f"{estimate(found.difference)} of {first}'s speed-up over {_problems_word(found.problems)} correct in both"
    if found.differ == 0:
        return f"their speed-ups are the same over {_problems_word(found.problems)} correct in both"
    if found.outcome is Outcome.OPEN:
        return f"whose kernels are faster is not settled: {run} has {where}, {_why_open(found, '1')}"
    word = "faster" if found.outcome is Outcome.BETTER else "slower"
    return f"{run}'s kernels are {word}: {where}, an interval that leaves out 1"


def _why_open(found: Paired, none: str) -> str:
    if found.differ < LEAST:
        return f"and fewer than {LEAST} problems differ"
    return f"an interval that holds {none}"


def _problems_word(count: int) -> str:
    return "1 problem" if count == 1 else f"{count} problems"
