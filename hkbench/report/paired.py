"""The statistics of two runs over the same problems: differences with intervals, and what they settle."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hkbench.report.aggregate import seconds, sum_of_costs, sum_of_tokens
from hkbench.report.compare_words import conclusion
from hkbench.report.comparison import MIN_PROBLEMS, Against, Flips, Paired, Part, RunTotals, Settled, Versus
from hkbench.report.model import FAST_P, Estimate, ProblemReport, ProblemState, Report
from hkbench.stats import Floats, bootstrap_interval, expanded_confidence, geometric_mean

#: pass@k is compared at these k, as far as both runs have so many samples.
KS = (1, 2, 3, 4, 5, 10, 20, 50, 100)

Pair = tuple[ProblemReport, ProblemReport]


def left_out_of(a: Report, b: Report, run: str) -> dict[str, str]:
    """Return problems that cannot be compared -> the reason, in the order of the plans. `run`: what B is called."""
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
            open_ = [one for one, problem in both if problem.state is not ProblemState.FINISHED]
            if silent:
                reasons[name] = f"not judged in {' and '.join(silent)}"
            elif open_:  # its best may still come
                reasons[name] = f"not finished in {' and '.join(open_)}"
    return reasons


def _by_name(report: Report) -> dict[str, tuple[str, ProblemReport]]:
    hashes = dict(zip(report.config.problems, report.config.problem_hashes, strict=True))
    return {problem.problem: (hashes[problem.problem], problem) for problem in report.problems}


def paired_with(a: Report, b: Report, run: str, labels: tuple[str, str]) -> Against | None:
    """Compare B, called `run`, with A; `labels`: what the conclusion calls A and B.

    `None` where they have no judged problem in common (`left_out_of`).
    """
    left_out = left_out_of(a, b, run)
    theirs = {problem.problem: problem for problem in b.problems}
    pairs = [(one, theirs[one.problem]) for one in a.problems if one.problem not in left_out]
    if not pairs:
        return None
    strong = [(a, b) for a, b in pairs if not a.weak and not b.weak]
    whole = _part(pairs, labels)
    speed_worse = whole.speedup is not None and whole.speedup.settled is Settled.WORSE
    return Against(
        run=run,
        left_out=left_out,
        weak_problems=tuple(a.problem for a, b in pairs if a.weak or b.weak),
        not_audited=tuple(a.problem for a, b in pairs if a.weak is None and b.weak is None),
        whole=whole,
        without_weak=_part(strong, labels) if strong and len(strong) < len(pairs) else None,
        flips=Flips(
            solved_only_b=tuple(a.problem for a, b in pairs if b.solved and not a.solved),
            solved_only_a=tuple(a.problem for a, b in pairs if a.solved and not b.solved),
            correct_only_b=tuple(a.problem for a, b in pairs if b.correct and not a.correct),
            correct_only_a=tuple(a.problem for a, b in pairs if a.correct and not b.correct),
        ),
        worse=whole.solved.settled is Settled.WORSE or speed_worse,
    )


def versus(a: ProblemReport, b: ProblemReport) -> Versus:
    """Compare the best correct samples of a problem in two runs."""
    first, second = a.best_speedup, b.best_speedup
    if first is None or second is None:
        return Versus(ratio=None, apart=False)
    apart = False
    if first.low is not None and first.high is not None and second.low is not None and second.high is not None:
        apart = first.high < second.low or second.high < first.low
    return Versus(ratio=second.value / first.value, apart=apart)


def run_totals(problems: Sequence[ProblemReport]) -> RunTotals:
    """Return what one run comes to over some of its problems."""
    return RunTotals(
        problems=len(problems),
        solved=sum(problem.solved for problem in problems),
        correct=sum(problem.correct for problem in problems),
        tokens_input=sum_of_tokens(problem.tokens.input for problem in problems),
        tokens_output=sum_of_tokens(problem.tokens.output for problem in problems),
        cost=sum_of_costs(problem.cost for problem in problems),
        generation_seconds=seconds(problem.generation_seconds for problem in problems),
        evaluation_seconds=seconds(problem.evaluation_seconds for problem in problems),
        wall_seconds=seconds(problem.wall_seconds for problem in problems),
    )


def above(problem: ProblemReport, p: float) -> float:
    """Return the problem's term of fast_p: 1.0 or 0.0."""
    return 0.0 if problem.fast_p is None else problem.fast_p[f"{p:g}"]


def chance(problem: ProblemReport, k: int) -> float | None:
    """Return the problem's pass@k; `None` where it has not so many judged samples in attempt 1."""
    return next((found.value for found in problem.pass_at_k if found.k == k), None)


def mean(values: Floats) -> float:
    return float(values.mean())


def _part(pairs: Sequence[Pair], labels: tuple[str, str]) -> Part:
    solved = _of_shares([(a.solved, b.solved) for a, b in pairs])
    speeds = [(a.best_speedup.value, b.best_speedup.value) for a, b in pairs if a.best_speedup and b.best_speedup]
    speedup = _paired(speeds, [b / a for a, b in speeds], 1.0, geometric_mean) if speeds else None
    chances = {k: [(chance(a, k), chance(b, k)) for a, b in pairs] for k in KS}
    known = {k: [(a, b) for a, b in values if a is not None and b is not None] for k, values in chances.items()}
    return Part(
        a=run_totals([a for a, _ in pairs]),
        b=run_totals([b for _, b in pairs]),
        solved=solved,
        correct=_of_shares([(a.correct, b.correct) for a, b in pairs]),
        speedup=speedup,
        fast_p={f"{p:g}": _of_shares([(above(a, p), above(b, p)) for a, b in pairs]) for p in FAST_P},
        pass_at_k={k: _of_shares(values) for k, values in known.items() if values},
        conclusion=conclusion(solved, speedup, labels[1], labels[0]),
    )


def _of_shares(values: Sequence[tuple[float, float]]) -> Paired:
    return _paired(values, [float(b) - float(a) for a, b in values], 0.0, mean)


def _paired(
    values: Sequence[tuple[float, float]], changes: Sequence[float], none: float, statistic: Callable[[Floats], float]
) -> Paired:
    """Return the statistic of A's and B's values, and of the changes with a bootstrap interval over problems.

    The interval is expanded for few problems: without that it calls one in nine pairs of alike runs of eight problems
    different. `none` is the change of a problem that is the same in both runs.
    """
    differ = sum(change != none for change in changes)
    settled = Settled.OPEN
    if len(changes) < 3 or differ == 0:  # of two there is none; of equal ones it would have no width
        difference = Estimate(value=statistic(np.asarray(changes)), low=None, high=None)
    else:
        found = bootstrap_interval(changes, statistic, confidence=expanded_confidence(len(changes)))
        difference = Estimate.of(found)
        if differ >= MIN_PROBLEMS and found.low > none:
            settled = Settled.BETTER
        elif differ >= MIN_PROBLEMS and found.high < none:
            settled = Settled.WORSE
    a, b = (statistic(np.asarray(side, dtype=np.float64)) for side in zip(*values, strict=True))
    return Paired(a=a, b=b, difference=difference, problems=len(changes), differ=differ, settled=settled)
