"""The figures of an A/A test: what came out of each verdict on equals, and what they say of the evaluator."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import fmean, median, pstdev
from typing import Any

from hkbench.records import Interval, Verdict
from hkbench.stats import ratio_of_medians

HKBENCH, KERNELBENCH = "hkbench", "kernelbench"
NEAR = 0.02  #: a speed-up of equals further from 1 than this lies outside
NORMAL_95 = 1.959964  #: half the width of a 95 % interval of a normal variable, in standard errors


@dataclass(frozen=True)
class Figure:
    """One verdict on equals. `speedup` is `None` where the evaluator did not call it correct: a false alarm."""

    evaluator: str  #: HKBENCH or KERNELBENCH
    problem: str
    status: str
    seconds: float  #: that the verdict took
    reason: str = ""  #: of a false alarm
    speedup: Interval | None = None
    first_round: Interval | None = None  #: without the repetitions that an unsettled interval asks for (hkbench)
    printed: float | None = None  #: the ratio of the means as they are stored, three digits each (KernelBench)
    rounds: int = 1
    warnings: tuple[str, ...] = ()
    samples: tuple[tuple[float, ...], tuple[float, ...]] = field(
        default=((), ()), repr=False
    )  #: baseline, candidate; s

    @property
    def outside(self) -> bool:
        return self.speedup is not None and abs(self.speedup.value - 1.0) > NEAR

    @property
    def missed(self) -> bool:
        """Whether the stated interval does not hold the truth."""
        return self.speedup is not None and not holds_one(self.speedup)

    def to_json(self) -> dict[str, Any]:
        plain = dict(vars(self))
        for name in ("speedup", "first_round"):
            plain[name] = None if plain[name] is None else plain[name].model_dump()
        return plain

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Figure:
        intervals = {
            name: None if plain[name] is None else Interval(**plain[name]) for name in ("speedup", "first_round")
        }
        left, right = plain["samples"]
        if "judge" in plain:  # an older file
            plain = {name: value for name, value in plain.items() if name != "judge"} | {"evaluator": plain["judge"]}
        return cls(**plain | intervals | {"warnings": tuple(plain["warnings"]), "samples": (tuple(left), tuple(right))})


def holds_one(interval: Interval) -> bool:
    return interval.low <= 1.0 <= interval.high


def of_verdict(verdict: Verdict, seconds: float, runs: Sequence[int]) -> Figure:
    """`runs` are the numbers of timed runs of each side in the rounds."""
    if verdict.speedup is None or verdict.baseline is None or verdict.candidate is None:
        failure = verdict.failure
        reason = f"{failure.kind}: {failure.message}" if failure is not None else "no timing"
        return Figure(HKBENCH, verdict.problem, verdict.status.value, seconds, reason)
    left, right = verdict.baseline.samples, verdict.candidate.samples
    return Figure(
        HKBENCH,
        verdict.problem,
        verdict.status.value,
        seconds,
        speedup=verdict.speedup,
        first_round=ratio_of_medians(left[: runs[0]], right[: runs[0]]),
        rounds=1 + sum(len(left) > made for made in accumulate(runs)),
        warnings=verdict.conditions.warnings,
        samples=(left, right),
    )


def of_means(problem: str, answer: dict[str, Any], seconds: float) -> Figure:
    """From the times of KernelBench's function, `answer` of kernelbench_timing.py."""
    if "error" in answer:
        return Figure(KERNELBENCH, problem, "error", seconds, answer["error"])
    left, right = answer["baseline_ms"], answer["candidate_ms"]
    speedup = ratio_of_means(left, right)
    return Figure(
        KERNELBENCH,
        problem,
        "fast" if speedup.value >= 1.0 else "slow",
        seconds,
        speedup=speedup,
        printed=answer["baseline_stats"]["mean"] / answer["candidate_stats"]["mean"],
        samples=(tuple(ms * 1e-3 for ms in left), tuple(ms * 1e-3 for ms in right)),
    )


def ratio_of_means(baseline: Sequence[float], candidate: Sequence[float]) -> Interval:
    """mean / mean with the interval that a reader of mean, standard deviation and number would make.

    Normal, to first order (the delta method): the relative standard errors of the two means, added in squares.
    """
    value = fmean(baseline) / fmean(candidate)
    relative = math.hypot(*(pstdev(times) / fmean(times) / math.sqrt(len(times)) for times in (baseline, candidate)))
    half = NORMAL_95 * relative * value
    return Interval(value=value, low=value - half, high=value + half)


def schedule(names: Sequence[str], verdicts: int, seed: int) -> list[str]:
    """Which problem comes when: block after block of all of them, each shuffled, so that stopping early is fair."""
    generator = random.Random(seed)
    order: list[str] = []
    while len(order) < verdicts:
        order += generator.sample(list(names), len(names))
    return order[:verdicts]


def summary(figures: Sequence[Figure]) -> str:
    """Return the tables, for each evaluator that there are figures of."""
    evaluators = [
        evaluator for evaluator in (HKBENCH, KERNELBENCH) if any(figure.evaluator == evaluator for figure in figures)
    ]
    return "\n\n".join(
        "\n".join(_evaluator(evaluator, [figure for figure in figures if figure.evaluator == evaluator]))
        for evaluator in evaluators
    )


def _evaluator(evaluator: str, figures: Sequence[Figure]) -> Iterator[str]:
    interval = "stated" if evaluator == HKBENCH else "reader's (normal, from mean, std, n)"
    yield f"{evaluator}: outside = further from 1 than {NEAR:g}; missed = the {interval} 95 % interval does not hold 1"
    yield (
        "| problem | verdicts | false alarms | outside | missed | median | lowest | highest | median width "
        "| median verdict, s |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for name in sorted({figure.problem for figure in figures}, key=_number):
        yield _row(name, [figure for figure in figures if figure.problem == name])
    yield _row("all", figures)
    yield from _notes(evaluator, figures)


def _number(name: str) -> tuple[int, str]:
    head = name.split("_", 1)[0]
    return (int(head) if head.isdecimal() else 0, name)


def _row(name: str, figures: Sequence[Figure]) -> str:
    timed = [figure.speedup for figure in figures if figure.speedup is not None]
    cells = [name, str(len(figures)), str(len(figures) - len(timed))]
    cells += [_share(figure.outside for figure in figures), _share(figure.missed for figure in figures)]
    if timed:
        values = [interval.value for interval in timed]
        cells += [f"{value:.4f}" for value in (median(values), min(values), max(values))]
        cells.append(f"{median(interval.high - interval.low for interval in timed):.4f}")
    else:
        cells += ["-"] * 4
    return "| " + " | ".join([*cells, f"{median(figure.seconds for figure in figures):.1f}"]) + " |"


def _share(hits: Iterable[bool]) -> str:
    found = list(hits)
    return f"{sum(found)} ({sum(found) / len(found):.1%})"


def _notes(evaluator: str, figures: Sequence[Figure]) -> Iterator[str]:
    firsts = [figure for figure in figures if figure.first_round is not None]
    if firsts:
        missed = _share(figure.first_round is not None and not holds_one(figure.first_round) for figure in firsts)
        rounds = Counter(figure.rounds for figure in firsts)
        counts = ", ".join(f"{number}: {rounds[number]}" for number in sorted(rounds))
        yield f"of the first round alone, the interval would miss 1 in {missed}; verdicts by number of rounds: {counts}"
    printed = [figure.printed for figure in figures if figure.printed is not None]
    if printed:
        yield f"from the means as stored (three digits): outside {_share(abs(value - 1.0) > NEAR for value in printed)}"
    for figure in figures:
        if figure.speedup is None:
            what = "false alarm" if evaluator == HKBENCH else "failed"
            yield f"{what}: {figure.problem}: {figure.status}: {figure.reason[:300]}"
    warned = Counter(warning for figure in figures for warning in figure.warnings)
    for text, count in warned.most_common(10):
        yield f"warned {count} times: {text[:200]}"
