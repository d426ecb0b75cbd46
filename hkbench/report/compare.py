"""A run against another one: a paired comparison over the problems that both judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TypeVar

import numpy as np

from hkbench.records import RunConfig, RunFacts
from hkbench.report.model import FAST_P, Cost, Estimate, ProblemReport, ProblemState, Report, ReportRecord
from hkbench.report.tally import sum_of_costs
from hkbench.report.words import price
from hkbench.stats import Floats, bootstrap_interval, expanded_confidence, fast_p, geometric_mean

#: Fewer problems that differ settle nothing: of five that all went one way, a sign test's two-sided p is 1/16.
LEAST = 6
#: pass@k is compared at these k, as far as both runs have so many samples.
KS = (1, 2, 3, 4, 5, 10, 20, 50, 100)
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
    cost: Cost
    generation_seconds: float | None
    evaluation_seconds: float | None
    wall_seconds: float | None  #: summed over problems, which overlap


class Paired(ReportRecord):
    """What became of the same problems in B, against A. `difference` is a mean of B - A, or of B / A for speed-ups."""

    difference: Estimate
    problems: int  #: it is taken over
    differ: int
    outcome: Outcome


class PairedChance(ReportRecord):
    """pass@k over the problems of which both runs have k judged samples in attempt 1."""

    k: int
    a: float
    b: float
    paired: Paired


class Part(ReportRecord):
    """The comparison over all compared problems, or over a part of them."""

    problems: int
    a: Side
    b: Side
    solved: Paired  #: of shares: 0.1 is ten points
    correct: Paired
    speedup: Paired | None  #: geometric mean of B / A over the problems correct in both; `None` where there is none
    fast_p: dict[str, Paired]  #: of shares, by p
    pass_at_k: tuple[PairedChance, ...]  #: of chances, for the `KS` that both runs have


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


class Flips(ReportRecord):
    """Problems that one run has and the other has not, in the order of A's plan."""

    solved_only_b: tuple[str, ...]
    solved_only_a: tuple[str, ...]
    correct_only_b: tuple[str, ...]
    correct_only_a: tuple[str, ...]


class Comparison(ReportRecord):
    """The whole comparison; what could not be compared is in `left_out`, by problem with the reason."""

    run: str  #: what the second run is called: B, or C and so on where A is compared with several
    differences: tuple[Difference, ...]
    incomplete: tuple[str, ...]
    left_out: dict[str, str]
    weak_problems: tuple[str, ...]  #: weak in what either run recorded
    not_audited: tuple[str, ...]  #: of which neither run recorded whether they are weak
    whole: Part
    without_weak: Part | None  #: `None` where no compared problem is weak, or every one is
    problems: tuple[PairedProblem, ...]
    flips: Flips

    @property
    def worse(self) -> bool:
        """Whether B solves fewer of all problems or is slower on those correct in both, beyond the interval."""
        speedup = self.whole.speedup
        return self.whole.solved.outcome is Outcome.WORSE or (speedup is not None and speedup.outcome is Outcome.WORSE)


Pair = tuple[ProblemReport, ProblemReport]
Number = TypeVar("Number", int, float)


def compare(a: Report, b: Report, run: str = "B") -> Comparison | None:
    """B, which is called `run`, against A. `None` where no judged problem is common to them (see `left_out_of`)."""
    left_out = left_out_of(a, b, run)
    theirs = {problem.problem: problem for problem in b.problems}
    pairs = [(one, theirs[one.problem]) for one in a.problems if one.problem not in left_out]
    if not pairs:
        return None
    strong = [pair for pair in pairs if not _weak(pair)]
    problems = tuple(map(_paired_problem, pairs))
    return Comparison(
        run=run,
        differences=differences(a, b),
        incomplete=tuple(
            f"{name}: {report.incomplete_because}" for name, report in (("A", a), (run, b)) if not report.complete
        ),
        left_out=left_out,
        weak_problems=tuple(pair[0].problem for pair in pairs if _weak(pair)),
        not_audited=tuple(a.problem for a, b in pairs if a.weak is None and b.weak is None),
        whole=_part(pairs),
        without_weak=_part(strong) if strong and len(strong) < len(pairs) else None,
        problems=problems,
        flips=_flips(problems),
    )


def left_out_of(a: Report, b: Report, run: str = "B") -> dict[str, str]:
    """Problems that cannot be compared, with the reason, in the order of the plans. `run`: what B is called."""
    first, second = _by_name(a), _by_name(b)
    reasons: dict[str, str] = {}
    for name in [*first, *(name for name in second if name not in first)]:
        if name not in second or name not in first:
            reasons[name] = f"only in {'A' if name in first else run}"
        elif first[name][0] != second[name][0]:
            reasons[name] = "the problem's file is not the same"
        else:
            both = (("A", first[name][1]), (run, second[name][1]))
            silent = [one for one, problem in both if not problem.judged]
            open_ = [one for one, problem in both if not _finished(problem)]
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


def settings_of(report: Report) -> dict[str, str | None]:
    """What can differ between two runs, by name: settings, then facts of the machine; `None`: not known."""
    return {**_settings(report.config), **_facts(report.facts)}


def differences(a: Report, b: Report) -> tuple[Difference, ...]:
    """Settings and facts that differ, settings first."""
    first, second = settings_of(a), settings_of(b)
    names = [*first, *(name for name in second if name not in first)]
    found = (Difference(setting=name, a=first.get(name), b=second.get(name)) for name in names)
    return tuple(one for one in found if one.a != one.b)


def obstacles(a: Report, b: Report) -> tuple[Difference, ...]:
    """Differences that make speed-ups incomparable: other sizes, or another device."""
    return barred(differences(a, b))


def barred(found: Sequence[Difference]) -> tuple[Difference, ...]:
    """Those of the differences that are `obstacles`; what is not known of a run is none."""
    names = {"device", "sizes", "device name", "device arch"}
    return tuple(one for one in found if one.setting in names and one.a is not None and one.b is not None)


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
        "price": price(facts.price) if facts.price is not None else None,
        "judge price": price(facts.judge_price) if facts.judge_price is not None else None,
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
        solved=_paired([float(b.solved) - float(a.solved) for a, b in pairs], 0.0, mean),
        correct=_paired([float(b.correct) - float(a.correct) for a, b in pairs], 0.0, mean),
        speedup=_paired(ratios, 1.0, geometric_mean) if ratios else None,
        fast_p={f"{p:g}": _paired([_above(b, p) - _above(a, p) for a, b in pairs], 0.0, mean) for p in FAST_P},
        pass_at_k=tuple(_chances(pairs)),
    )


def _above(problem: ProblemReport, p: float) -> float:
    """The problem's term of fast_p: 1.0 or 0.0."""
    return 0.0 if problem.fast_p is None else problem.fast_p[f"{p:g}"]


def _chances(pairs: Sequence[Pair]) -> Iterator[PairedChance]:
    for k in KS:
        known = [
            (first, second)
            for a, b in pairs
            if (first := _chance(a, k)) is not None and (second := _chance(b, k)) is not None
        ]
        if not known:
            return
        a, b = (mean(np.asarray(values)) for values in zip(*known, strict=True))
        yield PairedChance(k=k, a=a, b=b, paired=_paired([second - first for first, second in known], 0.0, mean))


def _chance(problem: ProblemReport, k: int) -> float | None:
    return next((found.value for found in problem.pass_at_k if found.k == k), None)


def _flips(problems: Sequence[PairedProblem]) -> Flips:
    return Flips(
        solved_only_b=tuple(one.problem for one in problems if one.solved_b and not one.solved_a),
        solved_only_a=tuple(one.problem for one in problems if one.solved_a and not one.solved_b),
        correct_only_b=tuple(one.problem for one in problems if one.correct_b and not one.correct_a),
        correct_only_a=tuple(one.problem for one in problems if one.correct_a and not one.correct_b),
    )


def _side(problems: Sequence[ProblemReport], both: Sequence[ProblemReport]) -> Side:
    speedups = [_speedup(problem) for problem in problems if problem.best_speedup is not None]
    shared = [_speedup(problem) for problem in both]
    return Side(
        correct=sum(problem.correct for problem in problems),
        solved=sum(problem.solved for problem in problems),
        fast_p={f"{p:g}": fast_p(speedups, len(problems), p) for p in FAST_P},
        geometric_mean_speedup=geometric_mean(shared) if shared else None,
        tokens_input=total([problem.tokens.input.total for problem in problems]),
        tokens_output=total([problem.tokens.output.total for problem in problems]),
        cost=sum_of_costs(problem.cost for problem in problems),
        generation_seconds=total([problem.generation_seconds for problem in problems]),
        evaluation_seconds=total([problem.evaluation_seconds for problem in problems]),
        wall_seconds=total([problem.wall_seconds for problem in problems]),
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


def mean(values: Floats) -> float:
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


def total(values: Iterable[Number | None]) -> Number | None:
    """The sum of what is known; `None` when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None
