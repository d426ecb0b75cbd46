"""The comparison of runs for a person, at most 100 columns."""

from __future__ import annotations

from hkbench.headline import plural
from hkbench.report.compare_words import conclusion, outcome, paired_rows
from hkbench.report.comparison import Against, Comparison, Flips, Part, RunColumn
from hkbench.report.format import UNKNOWN, cost, count, duration, pairs, ratio, table, title, wrapped
from hkbench.report.settings import Difference, caveats, differences
from hkbench.store.sanitize import one_line

_SETTING = 36  #: columns of a setting's value


def comparison_lines(found: Comparison) -> list[str]:
    """Return the whole text: two runs, or each of several against the first."""
    first, *others = found.runs
    if len(others) == 1:
        return _against(found, 1)
    lines = wrapped(f"{len(others)} runs, each against A, which is {_run_name(first)}.")
    for place, run in enumerate(others, 1):
        lines += ["", "", *title(f"{run.name} against A", "="), *_against(found, place)]
    return lines


def _run_name(run: RunColumn) -> str:
    config = run.config
    return f"{run.folder} ({config.model}; {config.backend} on {config.device}, {config.sizes} sizes)"


def _against(found: Comparison, place: int) -> list[str]:
    """Return the run at this place against the first."""
    columns, against = (found.runs[0], found.runs[place]), found.against[place - 1]
    run, weak_problems = against.run, against.weak_problems
    weak = f"; {len(weak_problems)} of them weak" if weak_problems else ""
    compared = f"{plural(against.whole.a.problems, 'problem')} that both finished{weak}"
    lines = pairs([*((one.name, _run_name(one)) for one in columns), ("Compared", compared)])
    for name, reason in against.left_out.items():
        lines += wrapped(f"{name}: {reason}", "Left out    ", " " * 12)
    for one in columns:
        if not one.complete:
            lines += wrapped(f"{one.name}: {one.incomplete_because}", "INCOMPLETE  ", " " * 12)
    differing = differences(found.settings, place)
    lines += ["", *_differences(differing, run)]
    for sentence in caveats(differing, run, "A"):
        lines += ["", *wrapped(sentence)]
    lines += _part("All compared problems", against.whole, run)
    if against.without_weak is not None:
        lines += _part("Without the weak problems", against.without_weak, run)
    elif weak_problems:
        lines += ["", *wrapped("Every compared problem is weak: there are no figures without them.")]
    if against.not_audited:
        lines += [
            "",
            f"{len(against.not_audited)} of the compared problems were not audited for weakness (hkbench audit).",
        ]
    return [*lines, "", *_flips(against.flips, run), "", *_problems(found, against, place)]


def _differences(found: list[Difference], run: str) -> list[str]:
    if not found:
        return ["Settings and machine are the same."]
    rows = [(one.setting, _value(one.a), _value(one.b)) for one in found]
    return [*title("Differences"), *table(("setting", "A", run), rows)]


def _value(value: str | None) -> str:
    return UNKNOWN if value is None else one_line(value, _SETTING)


def _part(name: str, part: Part, run: str) -> list[str]:
    rows = [(figure, a, b, difference) for figure, a, b, difference, _ in paired_rows(part, run)]
    if part.speedup is None:
        rows.append(("speed-up, 0 correct in both", UNKNOWN, UNKNOWN, UNKNOWN))
    both = (part.a, part.b)
    work = {
        "input tokens": [count(one.tokens_input) for one in both],
        "output tokens": [count(one.tokens_output) for one in both],
        "cost": [cost(one.cost) for one in both],
        "model calls": [duration(one.generation_seconds) for one in both],
        "evaluations": [duration(one.evaluation_seconds) for one in both],
        "wall, summed over problems": [duration(one.wall_seconds) for one in both],
    }
    rows += [(figure, a, b, "") for figure, (a, b) in work.items()]
    sentence = conclusion(part.solved, part.speedup, run, "A")
    return [
        "",
        *title(name),
        *table(("", "A", run, f"{run} - A"), rows, right=(1, 2)),
        "",
        *wrapped(sentence),
    ]


def _flips(found: Flips, run: str) -> list[str]:
    """Return the problems that one run has and the other has not."""
    lines: list[str] = []
    for what, names in (
        (f"solved in {run} only", found.solved_only_b),
        ("solved in A only", found.solved_only_a),
        (f"correct in {run} only", found.correct_only_b),
        ("correct in A only", found.correct_only_a),
    ):
        lines += wrapped(f"{what}: {', '.join(names) or 'none'}", "", "  ")
    return lines


def _problems(found: Comparison, against: Against, place: int) -> list[str]:
    rows = []
    for row in found.problems:
        a, b = row.cells[0], row.cells[place]
        if a is not None and b is not None and b.versus is not None:
            name = one_line(row.problem, 100) + (" (weak)" if row.problem in against.weak_problems else "")
            times = ratio(b.versus.ratio) + "*" * b.versus.apart
            rows.append((name, outcome(a.best_speedup), outcome(b.best_speedup), times))
    note = "best correct sample of each; *: the two intervals have no value in common"
    return [*title("Problems"), *table(("problem", "A", against.run, f"{against.run} / A"), rows, right=(3,)), note]
