"""Two runs side by side: a paired comparison over the problems that both judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Literal, TypeVar

import numpy as np

from hkbench.records import RunConfig, RunFacts
from hkbench.report.model import FAST_P, Estimate, ProblemReport, ProblemState, Report, ReportRecord
from hkbench.stats import Floats, bootstrap_interval, expanded_confidence, fast_p, geometric_mean

#: Fewer problems that differ settle nothing: of five that all went one way, a sign test's two-sided p is 1/16.
LEAST = 6
_NOT_COMPARED = {"schema_version", "problems", "problem_hashes", "judge"}  # settings that are shown another way


class Outcome(StrEnum):
    """What a difference between two runs comes to."""

    BETTER = "better"  #: B's, and the interval leaves out no difference
    WORSE = "worse"
    OPEN = "open"  #: the interval holds no difference, or fewer than `LEAST` problems differ


class Difference(ReportRecord):
    """A setting, or a fact of the machine, that is not the same; `None`: not known."""

    setting: str
    a: str | None
    b: str | None


class Side(ReportRecord):
    """One run over the compared problems."""

    correct: int
    solved: int
    fast_p: dict[str, float]
    geometric_mean_speedup: float | None  #: over the problems that are correct in both runs
    tokens_input: int | None  #: over all its samples of these problems; `None`: no reply said
    tokens_output: int | None
    generation_seconds: float | None
    evaluation_seconds: float | None
    wall_seconds: float | None  #: summed over problems, which overlap


class Paired(ReportRecord):
    """What became of the same problems in B, against A. `difference` is a mean of B - A, or of B / A for speed-ups."""

    difference: Estimate
    problems: int  #: it is taken over
    differ: int
    outcome: Outcome


class Part(ReportRecord):
    """The comparison over all compared problems, or over a part of them."""

    problems: int
    a: Side
    b: Side
    solved: Paired  #: of shares: 0.1 is ten points
    correct: Paired
    speedup: Paired | None  #: geometric mean of B / A over the problems correct in both; `None` where there is none


class PairedProblem(ReportRecord):
    """One problem: its best correct sample in each run."""

    problem: str
    weak: bool
    solved_a: bool
    solved_b: bool
    correct_a: bool
    correct_b: bool
    speedup_a: Estimate | None
    speedup_b: Estimate | None
    ratio: float | None  #: of B's speed-up to A's
    apart: bool  #: the intervals of the two speed-ups have no value in common


class Comparison(ReportRecord):
    """The whole comparison; what could not be compared is in `left_out`, by problem with the reason."""

    schema_version: Literal[1] = 1
    differences: tuple[Difference, ...]
    incomplete: tuple[str, ...]
    left_out: dict[str, str]
    weak_problems: tuple[str, ...]  #: weak in what either run recorded
    not_audited: tuple[str, ...]  #: of which neither run recorded whether they are weak
    whole: Part
    without_weak: Part | None  #: `None` where no compared problem is weak, or every one is
    problems: tuple[PairedProblem, ...]

    @property
    def worse(self) -> bool:
        """Whether B solves fewer of all problems or is slower on those correct in both, beyond the interval."""
        speedup = self.whole.speedup
        return self.whole.solved.outcome is Outcome.WORSE or (speedup is not None and speedup.outcome is Outcome.WORSE)


Pair = tuple[ProblemReport, ProblemReport]
Number = TypeVar("Number", int, float)


def compare(a: Report, b: Report) -> Comparison | None:
    """B against A. `None` where the runs have no judged problem in common (see `left_out_of`)."""
    left_out = left_out_of(a, b)
    theirs = {problem.problem: problem for problem in b.problems}
    pairs = [(one, theirs[one.problem]) for one in a.problems if one.problem not in left_out]
    if not pairs:
        return None
    strong = [pair for pair in pairs if not _weak(pair)]
    return Comparison(
        differences=differences(a, b),
        incomplete=tuple(
            f"{name}: {report.incomplete_because}" for name, report in (("A", a), ("B", b)) if not report.complete
        ),
        left_out=left_out,
        weak_problems=tuple(pair[0].problem for pair in pairs if _weak(pair)),
        not_audited=tuple(a.problem for a, b in pairs if a.weak is None and b.weak is None),
        whole=_part(pairs),
        without_weak=_part(strong) if strong and len(strong) < len(pairs) else None,
        problems=tuple(map(_paired_problem, pairs)),
    )


def left_out_of(a: Report, b: Report) -> dict[str, str]:
    """Problems that cannot be compared, with the reason, in the order of the plans."""
    first, second = _by_name(a), _by_name(b)
    reasons: dict[str, str] = {}
    for name in [*first, *(name for name in second if name not in first)]:
        if name not in second or name not in first:
            reasons[name] = f"only in {'A' if name in first else 'B'}"
        elif first[name][0] != second[name][0]:
            reasons[name] = "the problem's file is not the same"
        else:
            silent = [run for run, found in (("A", first), ("B", second)) if not found[name][1].judged]
            open_ = [run for run, found in (("A", first), ("B", second)) if not _finished(found[name][1])]
            if silent:
                reasons[name] = f"not judged in {' and '.join(silent)}"
            elif open_:  # its best may still come
                reasons[name] = f"not finished in {' and '.join(open_)}"
    return reasons


def _finished(problem: ProblemReport) -> bool:
    return problem.state is ProblemState.FINISHED


def _by_name(report: Report) -> dict[str, tuple[str, ProblemReport]]:
    hashes = dict(zip(report.config.problems, report.config.problem_hashes, strict=True))
    return {problem.problem: (hashes[problem.problem], problem) for problem in report.problems}


def differences(a: Report, b: Report) -> tuple[Difference, ...]:
    """Settings and facts that differ, settings first."""
    first, second = ({**_settings(one.config), **_facts(one.facts)} for one in (a, b))
    names = [*first, *(name for name in second if name not in first)]
    found = (Difference(setting=name, a=first.get(name), b=second.get(name)) for name in names)
    return tuple(one for one in found if one.a != one.b)


def obstacles(a: Report, b: Report) -> tuple[Difference, ...]:
    """Differences that make speed-ups incomparable: other sizes, or another device."""
    barred = {"device", "sizes", "device name", "device arch"}
    return tuple(one for one in differences(a, b) if one.setting in barred and one.a is not None and one.b is not None)


def _settings(config: RunConfig) -> dict[str, str | None]:
    data = config.model_dump(mode="json")
    flat = {name: value for name, value in data.items() if name not in _NOT_COMPARED}
    flat |= {f"judge {name}": value for name, value in data["judge"].items()}
    return {name.replace("_", " "): None if value is None else str(value) for name, value in flat.items()}


def _facts(facts: RunFacts) -> dict[str, str | None]:
    hardware = {name: value for name, value in facts.hardware.items() if name != "device"}
    name = facts.device.name if facts.device is not None else facts.hardware.get("device")
    return {
        "device name": name,
        "device arch": facts.device.arch if facts.device is not None else None,
        **{f"machine {key}": value for key, value in hardware.items()},
        "hkbench": facts.hkbench,
        **dict(facts.versions),
    }


def _weak(pair: Pair) -> bool:
    return any(problem.weak for problem in pair)


def _part(pairs: Sequence[Pair]) -> Part:
    both = [pair for pair in pairs if pair[0].best_speedup and pair[1].best_speedup]
    ratios = [_ratio(pair) for pair in both]
    sides = [_side([pair[i] for pair in pairs], [pair[i] for pair in both]) for i in (0, 1)]
    return Part(
        problems=len(pairs),
        a=sides[0],
        b=sides[1],
        solved=_paired([float(b.solved) - float(a.solved) for a, b in pairs], 0.0, _mean),
        correct=_paired([float(b.correct) - float(a.correct) for a, b in pairs], 0.0, _mean),
        speedup=_paired(ratios, 1.0, geometric_mean) if ratios else None,
    )


def _side(problems: Sequence[ProblemReport], both: Sequence[ProblemReport]) -> Side:
    speedups = [_speedup(problem) for problem in problems if problem.best_speedup is not None]
    shared = [_speedup(problem) for problem in both]
    return Side(
        correct=sum(problem.correct for problem in problems),
        solved=sum(problem.solved for problem in problems),
        fast_p={f"{p:g}": fast_p(speedups, len(problems), p) for p in FAST_P},
        geometric_mean_speedup=geometric_mean(shared) if shared else None,
        tokens_input=_sum([problem.tokens.input.total for problem in problems]),
        tokens_output=_sum([problem.tokens.output.total for problem in problems]),
        generation_seconds=_sum([problem.generation_seconds for problem in problems]),
        evaluation_seconds=_sum([problem.evaluation_seconds for problem in problems]),
        wall_seconds=_sum([problem.wall_seconds for problem in problems]),
    )


def _paired(values: Sequence[float], none: float, statistic: Callable[[Floats], float]) -> Paired:
    """`none` is the value of a problem that is the same in both runs. The interval is a bootstrap over problems,
    expanded for few of them: as it is, it calls one in nine pairs of alike runs of eight problems different.
    """
    differ = sum(value != none for value in values)
    if len(values) < 3 or differ == 0:  # of two there is none; of equal ones it would have no width
        same = Estimate(value=statistic(np.asarray(values)), low=None, high=None)
        return Paired(difference=same, problems=len(values), differ=differ, outcome=Outcome.OPEN)
    found = bootstrap_interval(values, statistic, confidence=expanded_confidence(len(values)))
    outcome = Outcome.OPEN
    if differ >= LEAST and found.low > none:
        outcome = Outcome.BETTER
    elif differ >= LEAST and found.high < none:
        outcome = Outcome.WORSE
    estimate = Estimate(value=found.value, low=found.low, high=found.high)
    return Paired(difference=estimate, problems=len(values), differ=differ, outcome=outcome)


def _mean(values: Floats) -> float:
    return float(values.mean())


def _speedup(problem: ProblemReport) -> float:
    assert problem.best_speedup is not None
    return problem.best_speedup.value


def _ratio(pair: Pair) -> float:
    return _speedup(pair[1]) / _speedup(pair[0])


def _paired_problem(pair: Pair) -> PairedProblem:
    a, b = pair
    first, second = a.best_speedup, b.best_speedup
    return PairedProblem(
        problem=a.problem,
        weak=_weak(pair),
        solved_a=a.solved,
        solved_b=b.solved,
        correct_a=a.correct,
        correct_b=b.correct,
        speedup_a=first,
        speedup_b=second,
        ratio=_ratio(pair) if first is not None and second is not None else None,
        apart=first is not None and second is not None and _apart(first, second),
    )


def _apart(first: Estimate, second: Estimate) -> bool:
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return False
    return first.high < second.low or second.high < first.low


def _sum(values: Sequence[Number | None]) -> Number | None:
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None
