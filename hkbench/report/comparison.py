"""The comparison of runs as data: comparison.json. `comparison.schema.json` is generated from `Comparison`.

Each run is compared with the first. As in the report: seconds everywhere, `null` where a figure is not known, and
fields are only ever added within one `schema_version`. Nothing depends on when it was written.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from hkbench.records import Outcome, RunConfig, RunFacts
from hkbench.report.model import (
    Cost,
    Estimate,
    FailureCount,
    Headline,
    ProblemState,
    ReportRecord,
    TokenCount,
)

#: Fewer problems that differ settle nothing: of five that all went one way, a sign test's two-sided p is 1/16.
MIN_PROBLEMS = 6
NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"  #: of the runs, in the order in which they are given


class RunTotals(ReportRecord):
    """What one run comes to over some of its problems."""

    problems: int
    solved: int
    correct: int
    tokens_input: TokenCount
    tokens_output: TokenCount
    cost: Cost
    generation_seconds: float | None
    evaluation_seconds: float | None
    wall_seconds: float | None  #: summed over problems, which overlap


class Chance(ReportRecord):
    """pass@k over the problems that have k judged samples in attempt 1."""

    k: int
    problems: int
    value: Estimate


class RankBy(StrEnum):
    """What runs are ranked by."""

    FASTER = "faster"  #: the share of faster problems, then the mean speed-up over all problems
    SOL = "sol"  #: how near the kernels are to the least time of the device


class RunFigures(RunTotals):
    """All figures of one run, those with an interval too."""

    outcomes: dict[Outcome, int]
    faster_share: Estimate
    solved_share: Estimate
    correct_share: Estimate
    fast_p: dict[str, Estimate]
    pass_at_k: tuple[Chance, ...]  #: for the `KS`, and for all samples of an attempt
    geometric_mean_speedup: Estimate | None  #: of the best samples of the problems that this run has correct
    geometric_mean_speedup_all: Estimate  #: over all of them, with 1 where no kernel is correct and faster
    sol: float | None  #: mean over all of them, 0 where no kernel is correct; `None`: of none is the floor known
    samples_judged: int
    samples_correct: int
    model_failures: tuple[FailureCount, ...]
    calls_made: int
    calls_replayed: int
    cost_per_solved: float | None


class RunColumn(ReportRecord):
    """One run. `folder`: as it was named."""

    name: str  #: A, B, ... as on the terminal
    label: str  #: its model, told apart from the others
    folder: str
    complete: bool
    incomplete_because: str | None
    config: RunConfig
    facts: RunFacts
    own: Headline
    own_without_weak: Headline | None
    figures: RunFigures | None  #: over the common problems; `None` where there are none
    figures_without_weak: RunFigures | None  #: `None` where no common problem is weak, or every one is


class SettingRow(ReportRecord):
    """A setting, or a fact of the machine, in each run; `None`: not known, or the run does not have it."""

    setting: str
    values: tuple[str | None, ...]
    differs: bool


class Versus(ReportRecord):
    """A problem's best correct sample against that of the first run."""

    ratio: float | None  #: of the speed-up to the first run's; `None`: not correct in both
    apart: bool  #: the intervals of the two speed-ups have no value in common


class ProblemCell(ReportRecord):
    """What became of a problem in one run."""

    number: int  #: its place in the run's plan, from 1: the anchor p1 of the run's report.html
    state: ProblemState
    judged: bool
    outcome: Outcome
    solved: bool
    correct: bool
    best_speedup: Estimate | None
    best_attempt: int | None
    best_sample: int | None
    versus: Versus | None  #: `None` in the first run, and where the problem is not compared with it


class ProblemRow(ReportRecord):
    """A problem in each run; `None` where a run has it not in its plan."""

    problem: str
    weak: bool  #: in what some run recorded
    common: bool
    cells: tuple[ProblemCell | None, ...]


class Settled(StrEnum):
    """What a difference between two runs comes to."""

    BETTER = "better"  #: B's, and the interval leaves out no difference
    WORSE = "worse"
    OPEN = "open"  #: the interval holds no difference, or fewer than `MIN_PROBLEMS` problems differ


class Paired(ReportRecord):
    """What became of the same problems in B, against A: means of both, and of B - A (of B / A for speed-ups)."""

    a: float
    b: float
    difference: Estimate
    problems: int  #: it is taken over
    differ: int
    settled: Settled


class Part(ReportRecord):
    """Two runs over all problems that they are compared over, or over a part of them."""

    a: RunTotals
    b: RunTotals
    solved: Paired  #: of shares: 0.1 is ten points
    correct: Paired
    speedup: Paired | None  #: over the problems correct in both; `None` where there is none
    fast_p: dict[str, Paired]  #: of shares, by p
    pass_at_k: dict[int, Paired]  #: of chances, by k: the `KS` of which both runs have so many samples
    conclusion: str


class Flips(ReportRecord):
    """Problems that one run has and the other has not, in the order of A's plan."""

    solved_only_b: tuple[str, ...]
    solved_only_a: tuple[str, ...]
    correct_only_b: tuple[str, ...]
    correct_only_a: tuple[str, ...]


class Against(ReportRecord):
    """A run, called B in the fields, against the first one, A."""

    run: str
    left_out: dict[str, str]  #: problems that are not compared, with the reason
    weak_problems: tuple[str, ...]  #: of the compared ones: weak in what either run recorded
    not_audited: tuple[str, ...]  #: of which neither run recorded whether they are weak
    whole: Part
    without_weak: Part | None  #: `None` where no compared problem is weak, or every one is
    flips: Flips
    worse: bool


class Comparison(ReportRecord):
    """comparison.json. Runs in the order in which they were named, problems in that of the first plan."""

    schema_version: Literal[2] = 2
    runs: tuple[RunColumn, ...]
    rank_by: RankBy = RankBy.FASTER
    ranking: tuple[str, ...] = ()  #: names of the runs with figures, best first
    settings: tuple[SettingRow, ...]
    common: tuple[str, ...]
    common_weak: tuple[str, ...]  #: those of them that are weak in what some run recorded
    against: tuple[Against, ...]  #: each run but the first
    problems: tuple[ProblemRow, ...]
    worse: bool  #: some run is worse than the first, by more than the interval
    definitions: dict[str, str]
