"""What the page shows first: the bar of outcomes, the cards, and the table of problems with its axis of speed-ups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hkbench.headline import is_timed, not_told, plural
from hkbench.records import CORRECT, Outcome
from hkbench.report import format as fmt
from hkbench.report.model import Estimate, Headline, Overall, ProblemReport, Report
from hkbench.report.page.axes import ratio_ticks
from hkbench.stats import share_interval

_EDGE = 6.0  #: per cent of the axis at its left end, kept for the crosses of failed problems


@dataclass(frozen=True)
class Card:
    """One headline figure: its name, the figure, its 95 % interval, and what it is a figure of."""

    name: str
    value: str
    interval: str
    under: str


@dataclass(frozen=True)
class Part:
    """A segment of the bar: all problems of one class."""

    outcome: Outcome
    count: int
    percent: float


def bar_parts(problems: Mapping[Outcome, int]) -> list[Part]:
    """Return the classes that occur, best first, with their share of all problems in per cent."""
    whole = sum(problems.values())
    return [Part(found, problems[found], 100 * problems[found] / whole) for found in Outcome if problems.get(found)]


def cards(report: Report) -> list[Card]:
    """Return three figures with their intervals; without times how much is correct, or compiles."""
    overall = report.overall
    if report.config.compiled_for is not None:
        seen = overall.samples_compiled + overall.samples_judged
        samples = Card("Samples", f"{overall.samples_compiled} / {seen}", "", "compiled of those with a verdict")
        return [_share("Compiled", overall.compiled, overall.problems, fmt.compiled_of(report)), samples]
    judged, kind = overall.judged, "judged problem"
    correct = _share("Correct", overall.correct, judged, f"{overall.correct} of {plural(judged, kind)}")
    if not is_timed(report.config):
        right = f"{overall.samples_correct} / {overall.samples_judged}"
        return [correct, Card("Samples", right, "", "correct of those with a verdict")]
    mean, whole = overall.geometric_mean_speedup, overall.geometric_mean_speedup_all
    beside = f"; {fmt.estimate(whole)} over all {judged}, with 1x where no kernel is correct and faster"
    faster = overall.outcomes.get(Outcome.FASTER, 0)
    return [
        _share("Faster than PyTorch", faster, judged, f"{faster} of {plural(judged, kind)}, beyond their intervals"),
        correct,
        Card(
            "Speed-up",
            fmt.ratio(mean.value if mean else None),
            _range(mean),
            f"geometric mean over the {plural(overall.correct, 'correct problem')}" + (beside if judged else ""),
        ),
    ]


def _share(name: str, count: int, total: int, under: str) -> Card:
    if not total:
        return Card(name, fmt.UNKNOWN, "", under)
    found = share_interval(count, total)
    return Card(name, fmt.percent(found.value), f"{100 * found.low:.0f} to {100 * found.high:.0f} %", under)


def _range(found: Estimate | None) -> str:
    if found is None or found.low is None or found.high is None:
        return ""
    return f"{fmt.ratio(found.low)} to {fmt.ratio(found.high)}"


def beside_the_cards(report: Report) -> list[tuple[str, str]]:
    """Return what is said under the cards, as names and words: solved, pass@k, whose kernels, in which language."""
    overall = report.overall
    rows = []
    if report.config.compiled_for is None:
        if is_timed(report.config):
            solved = f"{fmt.share_of(overall.solved, overall.judged)}: correct with a speed-up ≥ 1.0 by the estimate"
            rows.append(("Solved", f"{solved}, whatever the interval; exit codes and attempts go by it"))
        chances = [f"pass@{p.k} {fmt.percent(p.value)}" for p in overall.pass_at_k]
        rows.append(("Attempt 1", f"{', '.join(chances)}: the chance that one of k samples is correct"))
    own = overall.own_kernels
    if own.faster:
        unsure = not_told(own.not_established, own.not_profiled)
        unknown = f" ({', '.join(unsure)})" if unsure else ""
        said = f"did the work in {own.own} of the {plural(own.faster, 'faster problem')}{unknown}"
        rows.append(("Own kernels", f"{said}; track {report.track}"))
    found = ", ".join(f"{one.count} {one.language or 'unknown'}" for one in overall.languages)
    rows.append(("Language of the kernels", f"asked for {report.config.backend}; samples: {found or 'none'}"))
    return rows


def headlines_without_weak(overall: Overall) -> list[tuple[str, list[str]]]:
    """Return each headline over all problems and over those that are not weak; nothing where none is weak."""
    if overall.without_weak is None:
        return []
    columns: tuple[Overall | Headline, ...] = (overall, overall.without_weak)
    return [
        ("Problems", [f"{part.problems}, {part.judged} judged" for part in columns]),
        *(
            [("Faster than PyTorch", [_of(part.outcomes.get(Outcome.FASTER, 0), part.judged) for part in columns])]
            if overall.fast_p
            else []
        ),
        ("Correct", [_of(part.correct, part.judged) for part in columns]),
        ("Solved", [_of(part.solved, part.judged) for part in columns]),
        ("Speed-up, geometric mean", [fmt.estimate(part.geometric_mean_speedup) for part in columns]),
        *((f"fast_{p}", [fmt.percent((part.fast_p or {}).get(p)) for part in columns]) for p in overall.fast_p or {}),
        *(
            (
                f"fast_{p}, fastest baseline",
                [fmt.percent((part.fast_p_over_best or {}).get(p)) for part in columns],
            )
            for p in overall.fast_p_over_best or {}
        ),
        *(
            (f"pass@{one.k}", [fmt.percent(part.pass_at_k[i].value) for part in columns])
            for i, one in enumerate(overall.pass_at_k)
        ),
    ]


def _of(count: int, total: int) -> str:
    if not total:
        return fmt.UNKNOWN
    found = share_interval(count, total)
    return f"{count}: {fmt.percent(found.value)} [{100 * found.low:.1f}, {100 * found.high:.1f}]"


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis of speed-ups. Places are per cent of its length; its left end is kept for what failed."""

    low: float
    high: float

    @classmethod
    def of(cls, problems: Sequence[ProblemReport]) -> Axis:
        """Return one that holds every interval and 1x."""
        ends = [end for problem in problems for end in _ends(problem.best_speedup)]
        return cls(min([0.8, *ends]) / 1.1, max([1.25, *ends]) * 1.1)

    def place(self, speedup: float) -> float:
        share = math.log(speedup / self.low) / math.log(self.high / self.low)
        return round(_EDGE + (100 - _EDGE) * share, 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Places and labels, at most six or so: a narrow column has no room for more."""
        values, labels = ratio_ticks(self.low, self.high)
        step = math.ceil(len(values) / 7)
        kept = [(value, label) for i, (value, label) in enumerate(zip(values, labels, strict=True)) if i % step == 0]
        return [(self.place(value), label) for value, label in kept]

    @property
    def grid(self) -> str:
        """The lines of the ticks and of 1x as a CSS background."""
        lines = [(place, "--line") for place, _ in self.ticks] + [(self.place(1.0), "--muted")]
        return ", ".join(
            f"linear-gradient(var({hue}), var({hue})) {place}% 0 / 1px 100% no-repeat" for place, hue in lines
        )


@dataclass(frozen=True)
class Row:
    """A problem in the table. Places are those of `Axis`."""

    problem: ProblemReport
    anchor: str
    place: float | None  #: of the best speed-up; `None`: no sample is correct
    left: float
    width: float
    roofline: float | None  #: the least time that the device can take over the best kernel's, 0..1

    @property
    def words(self) -> str:
        """What the filter looks at."""
        found = self.problem
        return f"{found.problem} {found.outcome} {found.outcome.label} {found.failed_kind or ''} {found.language or ''}"


def rows(
    problems: Sequence[ProblemReport], anchors: Mapping[str, str], floors: Mapping[str, float]
) -> tuple[Axis, list[Row], list[Row]]:
    """Return the axis, the judged problems by speed-up with the failed ones last, and those that were not judged."""
    axis = Axis.of(problems)
    made = [_row(axis, problem, anchors[problem.problem], floors.get(problem.problem)) for problem in problems]
    judged = [row for row in made if row.problem.outcome is not Outcome.NOT_JUDGED]
    return axis, sorted(judged, key=_order), [row for row in made if row.problem.outcome is Outcome.NOT_JUDGED]


def _order(row: Row) -> tuple[float, int]:
    best = row.problem.best_speedup
    return (-best.value if best is not None else 0.0, list(Outcome).index(row.problem.outcome))


def _row(axis: Axis, problem: ProblemReport, anchor: str, roofline: float | None) -> Row:
    best = problem.best_speedup
    if best is None or problem.outcome not in CORRECT:
        return Row(problem, anchor, None, 0.0, 0.0, roofline)
    low, high = (axis.place(end) for end in _ends(best))
    return Row(problem, anchor, axis.place(best.value), low, round(high - low, 2), roofline)


def _ends(found: Estimate | None) -> tuple[float, ...]:
    """Return the interval, or the value twice where there is none; nothing without a speed-up."""
    if found is None:
        return ()
    return found.low or found.value, found.high or found.value
