"""Runs side by side for a person, at most 100 columns."""

from __future__ import annotations

from collections.abc import Sequence

from hkbench.headline import plural
from hkbench.report.compare import Comparison, Flips, PairedProblem, Part, Side
from hkbench.report.compare_words import caveats, conclusion, outcome, points
from hkbench.report.side_by_side import RunColumn, SideBySide
from hkbench.report.words import UNKNOWN, cost, duration, estimate, pairs, percent, ratio, table, title, wrapped
from hkbench.store.plain import one_line

_SETTING = 36  #: columns of a setting's value


def side_by_side_lines(found: SideBySide) -> list[str]:
    """The whole text: two runs, or each of several against the first."""
    first, *others = found.runs
    if len(others) == 1:
        return comparison_lines(found.against[0].comparison, run_name(first), run_name(others[0]))
    lines = wrapped(f"{len(others)} runs, each against A, which is {run_name(first)}.")
    for run, against in zip(others, found.against, strict=True):
        lines += ["", "", *title(f"{run.name} against A", "=")]
        lines += comparison_lines(against.comparison, run_name(first), run_name(run))
    return lines


def run_name(run: RunColumn) -> str:
    config = run.config
    return f"{run.folder} ({config.model}; {config.backend} on {config.device}, {config.sizes} sizes)"


def comparison_lines(found: Comparison, name_a: str, name_b: str) -> list[str]:
    """One run against another."""
    run = found.run
    weak = f"; {len(found.weak_problems)} of them weak" if found.weak_problems else ""
    lines = pairs(
        [
            ("A", name_a),
            (run, name_b),
            ("Compared", f"{plural(found.whole.problems, 'problem')} that both finished{weak}"),
        ]
    )
    for name, reason in found.left_out.items():
        lines += wrapped(f"{name}: {reason}", "Left out    ", " " * 12)
    for reason in found.incomplete:
        lines += wrapped(f"INCOMPLETE  {reason}")
    lines += ["", *_differences(found)]
    for sentence in caveats(found):
        lines += ["", *wrapped(sentence)]
    lines += ["", *title("All compared problems"), *_part(found.whole, run), ""]
    lines += wrapped(conclusion(found.whole, run))
    if found.without_weak is not None:
        lines += ["", *title("Without the weak problems"), *_part(found.without_weak, run), ""]
        lines += wrapped(conclusion(found.without_weak, run))
    elif found.weak_problems:
        lines += ["", *wrapped("Every compared problem is weak: there are no figures without them.")]
    if found.not_audited:
        count = len(found.not_audited)
        lines += ["", f"{count} of the compared problems were not audited for weakness (hkbench audit)."]
    return [*lines, "", *_flips(found.flips, run), "", *_problems(found.problems, run)]


def _differences(found: Comparison) -> list[str]:
    if not found.differences:
        return ["Settings and machine are the same."]
    rows = [(one.setting, _value(one.a), _value(one.b)) for one in found.differences]
    return [*title("Differences"), *table(("setting", "A", found.run), rows)]


def _value(value: str | None) -> str:
    return UNKNOWN if value is None else one_line(value, _SETTING)


def _part(part: Part, run: str) -> list[str]:
    n = part.problems
    speed = estimate(part.speedup.difference) if part.speedup is not None else UNKNOWN
    both = part.speedup.problems if part.speedup is not None else 0
    rows = [
        ("solved", f"{part.a.solved} of {n}", f"{part.b.solved} of {n}", points(part.solved.difference)),
        ("correct", f"{part.a.correct} of {n}", f"{part.b.correct} of {n}", points(part.correct.difference)),
        *(
            (f"fast_p, p={p}", percent(part.a.fast_p[p]), percent(part.b.fast_p[p]), points(found.difference))
            for p, found in part.fast_p.items()
        ),
        *((f"pass@{one.k}", percent(one.a), percent(one.b), points(one.paired.difference)) for one in part.pass_at_k),
        (f"speed-up, {both} correct in both", *_both(part, "geometric_mean_speedup"), f"{speed} ({run} / A)"),
        ("input tokens", *_both(part, "tokens_input"), ""),
        ("output tokens", *_both(part, "tokens_output"), ""),
        ("cost", cost(part.a.cost), cost(part.b.cost), ""),
        ("model calls", *_both(part, "generation_seconds"), ""),
        ("evaluations", *_both(part, "evaluation_seconds"), ""),
        ("wall, summed over problems", *_both(part, "wall_seconds"), ""),
    ]
    return table(("", "A", run, f"{run} - A"), rows, right=(1, 2))


def _both(part: Part, name: str) -> tuple[str, str]:
    return _figure(part.a, name), _figure(part.b, name)


def _figure(side: Side, name: str) -> str:
    value = getattr(side, name)
    if name.endswith("_seconds"):
        return duration(value)
    if name.startswith("tokens"):
        return UNKNOWN if value is None else f"{value:,}"
    return ratio(value)


def _flips(found: Flips, run: str) -> list[str]:
    """Problems that one run has and the other has not."""
    lines: list[str] = []
    for what, names in (
        (f"solved in {run} only", found.solved_only_b),
        ("solved in A only", found.solved_only_a),
        (f"correct in {run} only", found.correct_only_b),
        ("correct in A only", found.correct_only_a),
    ):
        lines += wrapped(f"{what}: {', '.join(names) or 'none'}", "", "  ")
    return lines


def _problems(problems: Sequence[PairedProblem], run: str) -> list[str]:
    rows = [
        (
            one_line(one.problem, 100) + (" (weak)" if one.weak else ""),
            outcome(one.speedup_a),
            outcome(one.speedup_b),
            ratio(one.ratio) + ("*" if one.apart else ""),
        )
        for one in problems
    ]
    note = "best correct sample of each; *: the two intervals have no value in common"
    return [*title("Problems"), *table(("problem", "A", run, f"{run} / A"), rows, right=(3,)), note]
