"""Measurements of one source that contradict each other: the sign of a machine that was not quiet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from hkbench.records import Interval
from hkbench.report.model import Disagreement, Estimate, Measured
from hkbench.store import figures
from hkbench.store.reader import ProblemView, RunView, SampleView


def disagreements(run: RunView) -> tuple[Disagreement, ...]:
    """Return the sources measured more than once, with speed-ups whose 95 % intervals exclude each other.

    One for each source, in the order of the plan: its slowest and its fastest measurement. A verdict that a sample has
    from another one with the same code (`copy_of`) is no measurement of its own.
    """
    return tuple(found for problem in run.problems for found in _of_problem(problem))


def _of_problem(problem: ProblemView) -> Iterator[Disagreement]:
    sources: defaultdict[str, list[tuple[SampleView, Interval]]] = defaultdict(list)
    for sample in problem.samples:
        if sample.speedup is not None and sample.code_sha256 is not None and sample.copy_of is None:
            sources[sample.code_sha256].append((sample, sample.speedup))
    for measured in sources.values():
        slower = min(measured, key=lambda pair: pair[1].high)
        faster = max(measured, key=lambda pair: pair[1].low)
        if slower[1].high < faster[1].low:
            yield Disagreement(problem=problem.name, slower=_measured(*slower), faster=_measured(*faster))


def _measured(sample: SampleView, found: Interval) -> Measured:
    return Measured(attempt=sample.key.attempt, sample=sample.key.sample, speedup=Estimate.of(found))


def warnings_of(found: Iterable[Disagreement]) -> tuple[str, ...]:
    """Return a sentence for each in a report's headline: which samples, and both speed-ups with their intervals."""
    return tuple(
        f"{one.problem}: the same code was measured at {_said(one.slower)} and at {_said(one.faster)}: "
        "the machine was not quiet, and speed-ups of this run are less certain than their intervals say"
        for one in found
    )


def _said(found: Measured) -> str:
    measured = figures.speedup_interval(found.speedup.value, found.speedup.low, found.speedup.high)
    return f"{measured} (sample {found.attempt}.{found.sample})"
