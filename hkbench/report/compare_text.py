"""A comparison of two runs for a person, at most 100 columns."""

from __future__ import annotations

from collections.abc import Sequence

from hkbench.report.compare import LEAST, Comparison, Outcome, Paired, PairedProblem, Part, Side
from hkbench.report.model import Estimate
from hkbench.report.words import UNKNOWN, duration, estimate, pairs, percent, ratio, table, title, wrapped
from hkbench.store.plain import one_line

_SETTING = 36  #: columns of a setting's value


def comparison_lines(found: Comparison, name_a: str, name_b: str) -> list[str]:
    """The whole text."""
    weak = f"; {len(found.weak_problems)} of them weak" if found.weak_problems else ""
    lines = pairs(
        [("A", name_a), ("B", name_b), ("Compared", f"{found.whole.problems} problems that both finished{weak}")]
    )
    for name, reason in found.left_out.items():
        lines += wrapped(f"{name}: {reason}", "Left out    ", " " * 12)
    for reason in found.incomplete:
        lines += wrapped(f"INCOMPLETE  {reason}")
    lines += ["", *_differences(found), "", *title("All compared problems"), *_part(found.whole), ""]
    lines += wrapped(conclusion(found.whole))
    if found.without_weak is not None:
        lines += ["", *title("Without the weak problems"), *_part(found.without_weak), ""]
        lines += wrapped(conclusion(found.without_weak))
    elif found.weak_problems:
        lines += ["", *wrapped("Every compared problem is weak: there are no figures without them.")]
    if found.not_audited:
        count = len(found.not_audited)
        lines += ["", f"{count} of the compared problems were not audited for weakness (hkbench audit)."]
    return [*lines, "", *_flips(found.problems), "", *_problems(found.problems)]


def conclusion(part: Part) -> str:
    """One sentence: what the figures settle, and over how many problems."""
    return f"{_solved_words(part.solved)}; {_speed_words(part.speedup)}."


def _solved_words(found: Paired) -> str:
    if found.differ == 0:
        return f"Of {_problems_word(found.problems)} A and B solve the same ones"
    said = f"{_points(found.difference)} in solved problems over {_problems_word(found.problems)}"
    if found.outcome is Outcome.OPEN:
        return f"Whether A or B solves more is not settled: {said}, {_why_open(found, '0')}"
    word = "more" if found.outcome is Outcome.BETTER else "fewer"
    return f"B solves {word}: {said}, an interval that leaves out 0"


def _speed_words(found: Paired | None) -> str:
    if found is None:
        return "no problem is correct in both, so nothing is said of speed"
    where = f"{estimate(found.difference)} of A's speed-up over {_problems_word(found.problems)} correct in both"
    if found.differ == 0:
        return f"their speed-ups are the same over {_problems_word(found.problems)} correct in both"
    if found.outcome is Outcome.OPEN:
        return f"whose kernels are faster is not settled: B has {where}, {_why_open(found, '1')}"
    word = "faster" if found.outcome is Outcome.BETTER else "slower"
    return f"B's kernels are {word}: {where}, an interval that leaves out 1"


def _why_open(found: Paired, none: str) -> str:
    if found.differ < LEAST:
        return f"and fewer than {LEAST} problems differ"
    return f"an interval that holds {none}"


def _problems_word(count: int) -> str:
    return "1 problem" if count == 1 else f"{count} problems"


def _points(found: Estimate) -> str:
    value = f"{100 * found.value:+.1f} points"
    if found.low is None or found.high is None:
        return value
    return f"{value} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def _differences(found: Comparison) -> list[str]:
    if not found.differences:
        return ["Settings and machine are the same."]
    rows = [(one.setting, _value(one.a), _value(one.b)) for one in found.differences]
    return [*title("Differences"), *table(("setting", "A", "B"), rows)]


def _value(value: str | None) -> str:
    return UNKNOWN if value is None else one_line(value, _SETTING)


def _part(part: Part) -> list[str]:
    n = part.problems
    speed = estimate(part.speedup.difference) if part.speedup is not None else UNKNOWN
    both = part.speedup.problems if part.speedup is not None else 0
    rows = [
        ("solved", f"{part.a.solved} of {n}", f"{part.b.solved} of {n}", _points(part.solved.difference)),
        ("correct", f"{part.a.correct} of {n}", f"{part.b.correct} of {n}", _points(part.correct.difference)),
        *((f"fast_p, p={p}", percent(part.a.fast_p[p]), percent(part.b.fast_p[p]), "") for p in part.a.fast_p),
        (f"speed-up, {both} correct in both", *_both(part, "geometric_mean_speedup"), f"{speed} (B / A)"),
        ("input tokens", *_both(part, "tokens_input"), ""),
        ("output tokens", *_both(part, "tokens_output"), ""),
        ("model calls", *_both(part, "generation_seconds"), ""),
        ("evaluations", *_both(part, "evaluation_seconds"), ""),
        ("wall, summed over problems", *_both(part, "wall_seconds"), ""),
    ]
    return table(("", "A", "B", "B - A"), rows, right=(1, 2))


def _both(part: Part, name: str) -> tuple[str, str]:
    return _figure(part.a, name), _figure(part.b, name)


def _figure(side: Side, name: str) -> str:
    value = getattr(side, name)
    if name.endswith("_seconds"):
        return duration(value)
    if name.startswith("tokens"):
        return UNKNOWN if value is None else f"{value:,}"
    return ratio(value)


def _flips(problems: Sequence[PairedProblem]) -> list[str]:
    """Problems that one run has and the other has not."""
    kinds = [
        ("solved in B only", [one for one in problems if one.solved_b and not one.solved_a]),
        ("solved in A only", [one for one in problems if one.solved_a and not one.solved_b]),
        ("correct in B only", [one for one in problems if one.correct_b and not one.correct_a]),
        ("correct in A only", [one for one in problems if one.correct_a and not one.correct_b]),
    ]
    lines: list[str] = []
    for what, found in kinds:
        names = ", ".join(one.problem for one in found) or "none"
        lines += wrapped(f"{what}: {names}", "", "  ")
    return lines


def _problems(problems: Sequence[PairedProblem]) -> list[str]:
    rows = [
        (
            one_line(one.problem, 100) + (" (weak)" if one.weak else ""),
            _outcome(one.solved_a, one.correct_a, one.speedup_a),
            _outcome(one.solved_b, one.correct_b, one.speedup_b),
            ratio(one.ratio) + ("*" if one.apart else ""),
        )
        for one in problems
    ]
    note = "best correct sample of each; *: the two intervals have no value in common"
    return [*title("Problems"), *table(("problem", "A", "B", "B / A"), rows, right=(3,)), note]


def _outcome(solved: bool, correct: bool, speedup: Estimate | None) -> str:
    word = "solved" if solved else "slow" if correct else "not correct"
    return word if speedup is None else f"{word} {estimate(speedup)}"
