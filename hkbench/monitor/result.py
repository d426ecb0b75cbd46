"""What a run has come to so far: the figures of the report's headline, from the events alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from rich.text import Text

from hkbench.headline import SEPARATOR, classes_of, is_timed, own_kernels
from hkbench.records import Interval, Outcome
from hkbench.store.figures import speedup, speedup_interval
from hkbench.store.state import RunState


@dataclass(frozen=True)
class Result:
    """The headline of a run; each problem counts by its best sample, as in the report."""

    outcomes: Mapping[Outcome, int]  #: problems by class
    judged: int  #: problems with a verdict
    solved: int
    speedups: tuple[float, ...]  #: of problems with a correct sample, its best
    expected: tuple[Outcome, ...]  #: classes that are named with a count of nothing, too
    timed: bool  #: times are measured
    own_kernels: str | None  #: whose kernels the faster ones are, where that has to be said

    @classmethod
    def of(cls, state: RunState) -> Result:
        outcomes = state.outcomes
        faster = [p.best_sample for p in state.problems.values() if p.outcome is Outcome.FASTER and p.best_sample]
        own = [sample.whose for sample in faster]
        told = any(whose is not None for whose, _ in own)  # the journal of an older version says of none
        return cls(
            outcomes=outcomes,
            judged=outcomes.total() - outcomes[Outcome.NOT_JUDGED] - outcomes[Outcome.COMPILED],
            solved=state.solved,
            speedups=tuple(best for problem in state.problems.values() if (best := problem.best) is not None),
            expected=classes_of(state.config),
            timed=is_timed(state.config),
            own_kernels=own_kernels(own, state.config.backend) if told else None,
        )

    @property
    def fast_1(self) -> float | None:
        """The share of judged problems with a speed-up above 1; `None` where none is judged or timed."""
        return sum(value > 1.0 for value in self.speedups) / self.judged if self.judged and self.timed else None

    def mean(self, *, interval: bool = True) -> tuple[float, float | None, float | None] | None:
        """Return the geometric mean of the speed-ups, with its interval unless there is one only; `None` of none."""
        if not self.speedups:
            return None
        if len(self.speedups) == 1 or not interval:
            # numpy takes a tenth of a second to import, which a run without a correct sample need not spend.
            from hkbench.stats import geometric_mean

            return geometric_mean(self.speedups), None, None
        found = _interval(self.speedups)
        return found.value, found.low, found.high


@lru_cache(maxsize=64)
def _interval(speedups: tuple[float, ...]) -> Interval:
    from hkbench.stats import bootstrap_interval, geometric_mean

    return bootstrap_interval(speedups, geometric_mean)


def classes(result: Result) -> Text:
    """Count the problems by class: `faster 6 · on a par 11 · slower 2 · wrong 9 · not judged 3`."""
    line = Text()
    for outcome in Outcome:
        count = result.outcomes.get(outcome, 0)
        if count or outcome in result.expected:
            line.append(SEPARATOR if line else "", "dim")
            line.append(f"{outcome.label} {count}", outcome.style if count else "dim")
    if not result.timed:
        line.append(f"{SEPARATOR}nothing is measured", "dim")
    return line


def bar(result: Result, width: int) -> Text:
    """Stack the classes in a bar of `width` columns, each problem's share in its colour."""
    total = sum(result.outcomes.values())
    line = Text()
    counted = 0
    for outcome in Outcome:
        counted += result.outcomes.get(outcome, 0)
        end = round(width * counted / total) if total else 0
        line.append(("░" if outcome is Outcome.NOT_JUDGED else "█") * (end - len(line)), outcome.style)
    return line


def figures(result: Result) -> Text:
    """State the averages: `solved 7/8 · geo-mean 2.48x [0.96, 5.53] · fast_1 87.5 %`."""
    if Outcome.COMPILED in result.expected:
        return Text("")
    line = Text(f"solved {result.solved}/{result.judged} judged", "bold")
    mean, fast_1 = result.mean(), result.fast_1
    if mean is not None:
        line.append(f"{SEPARATOR}geo-mean {speedup_interval(*mean)}")
    if fast_1 is not None:
        line.append(f"{SEPARATOR}fast_1 {100 * fast_1:.1f} %")
    return line


def mean_text(result: Result) -> str:
    """Format the mean alone, for a table of runs; empty where there is none."""
    found = result.mean(interval=False)
    return speedup(found[0]) if found is not None else ""
