"""Figures, outcomes and tables in words, the same in every report: at most 100 columns, no colours."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from hkbench.headline import plural
from hkbench.records import EvaluationSettings, Interval, Outcome, Ownership, Price, RunFacts, Status
from hkbench.report.model import (
    CategoryBudget,
    Cost,
    Estimate,
    FailureCount,
    ProblemReport,
    Report,
    RoleReport,
    TokenCount,
)
from hkbench.store.costs import money
from hkbench.store.figures import kernel_time, speedup, speedup_interval
from hkbench.store.sanitize import one_line

WIDTH = 100
UNKNOWN = "-"
_ARCHITECTURES = {"x86_64", "aarch64", "arm64", "AMD64"}  #: what Python calls a processor that it cannot name


def title(text: str, rule: str = "-") -> list[str]:
    return [text, rule * len(text)]


def pairs(rows: Iterable[tuple[str, str]]) -> list[str]:
    lines: list[str] = []
    for name, value in rows:
        lines += wrapped(value, f"{name:<11} ", " " * 12)
    return lines


def wrapped(text: str, first: str = "", rest: str | None = None) -> list[str]:
    """Return `text` without escapes in lines of at most WIDTH; words too long for a line are cut."""
    return textwrap.wrap(
        one_line(text, 100_000),
        WIDTH,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Return the lines of a table with columns as wide as their widest cell; `right` ones are right-aligned.

    Where that is wider than the page, the first column is cut.
    """
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    widths[0] = max(len(header[0]), min(widths[0], WIDTH - sum(widths[1:]) - 2 * (len(widths) - 1)))
    aligned = set(right)
    lines = []
    for row in (header, ["-" * width for width in widths], *rows):
        cells = [one_line(row[0], widths[0]), *row[1:]]
        lines.append(
            "  ".join(cell.rjust(widths[i]) if i in aligned else cell.ljust(widths[i]) for i, cell in enumerate(cells))
        )
    return lines


def outcome(problem: ProblemReport) -> str:
    """Return the class of a problem, or the kind of failure if no sample is correct; a star: not finished."""
    word = problem.outcome.label
    if problem.outcome in (Outcome.WRONG, Outcome.REFUSED) and problem.failed_kind is not None:
        word += f", {problem.failed_kind}"
    return word if problem.state == "finished" else f"{word}*"


def own(share: float | None, ownership: Ownership | None = None) -> str:
    """Return the share of the work that own kernels did; "?" where whose work it was is not established."""
    if ownership is Ownership.NOT_ESTABLISHED:
        return "?"
    return UNKNOWN if share is None else f"{100 * share:.0f} %"


def compiled_of(report: Report) -> str:
    """Return `1 of 2 problems with a kernel that compiles for gfx942`, of a run that measures nothing."""
    found, arch = report.overall, report.config.compiled_for
    return f"{found.compiled} of {plural(found.problems, 'problem')} with a kernel that compiles for {arch}"


def share_of(part: int, total: int) -> str:
    return f"{part} of {plural(total, 'judged problem')}" + (f", {percent(part / total)}" if total else "")


def percent(value: float | None) -> str:
    return UNKNOWN if value is None else f"{100 * value:.1f} %"


def fast_p(found: dict[str, float] | None) -> str:
    return UNKNOWN if found is None else ", ".join(f"p={p}: {percent(x)}" for p, x in found.items())


def ratio(value: float | None) -> str:
    return UNKNOWN if value is None else speedup(value)


def estimate(found: Estimate | Interval | None) -> str:
    """Return a speed-up with its 95 % interval, where there is one."""
    return UNKNOWN if found is None else speedup_interval(found.value, found.low, found.high)


def count(found: TokenCount) -> str:
    """Return the tokens; a plus where some replies did not give theirs."""
    if found.total is None:
        return UNKNOWN
    return f"{found.total:,}" + ("+" if found.unreported_replies else "")


def money_or_unknown(value: float | None, currency: str | None) -> str:
    return UNKNOWN if value is None else money(value, currency)


def cost(found: Cost) -> str:
    """Return the money; a plus where the cost of some replies is not known."""
    if found.total is None:
        return "unknown"
    return money(found.total, found.currency) + ("+" if found.unpriced_replies else "")


def price(found: Price) -> str:
    rates = found.rates
    cached = "as input" if rates.cached_input is None else f"{rates.cached_input:g}"
    return (
        f"in {found.currency} for a million tokens: input {rates.input:g}, cached {cached}, output {rates.output:g} "
        f"({found.entry} in {found.source})"
    )


def whole_cost(report: Report) -> str:
    """Return the cost of a run, what a solved problem cost, and why a part is not known."""
    overall = report.overall
    found = overall.cost
    if not overall.calls.made:
        return "0: no model calls (recorded replies)" if report.config.replay is not None else "0: no model calls"
    if found.currency is None:
        models = [report.config.model, *filter(None, [report.config.judge_model])]
        return f"unknown: no price for {one_line(' and '.join(dict.fromkeys(models)), 200)} (see --prices)"
    parts = [cost(found)]
    if overall.cost_per_solved is not None:
        parts.append(f"{money(overall.cost_per_solved, found.currency)} a solved problem")
    if found.unpriced_replies:
        parts.append(f"the cost of {plural(found.unpriced_replies, 'reply', 'replies')} is unknown")
    return "; ".join(parts)


def of_role(found: RoleReport) -> str:
    """Return the calls of one role in a line."""
    calls, tokens = found.calls, found.tokens
    made = f"{calls.made} calls made, {calls.replayed} replayed, {calls.failed} given up"
    used = f"{count(tokens.input)} input and {count(tokens.output)} output tokens"
    money_ = f"cost {cost(found.cost)}" if calls.made else "no cost"
    return f"{', '.join(found.models) or 'no answer'}: {made}; {used}; {money_}; {duration(found.seconds)}"


SAVED = ("category", "problems", "worked", "skipped", "left out", "attempts", "tokens", "cost", "time")
MIGHT_HAVE_COST = ("category, stage", "worked", "skipped", "left out", "gained", "mean gain")
BUDGET_NOTE = (
    "Estimates. attempts, tokens, cost, time: not spent, by the mean of the category's worked stages. gained, mean "
    "gain: of the same stage where it was worked in the same category."
)


def saved_rows(budget: Sequence[CategoryBudget], currency: str | None) -> list[tuple[str, ...]]:
    """Return the columns of `SAVED` by category."""
    return [
        (
            one.category,
            *(f"{number}" for number in (one.problems, one.worked, one.skipped, one.left_out)),
            UNKNOWN if one.saved.attempts is None else f"{one.saved.attempts:.1f}",
            UNKNOWN if one.saved.tokens is None else f"{one.saved.tokens:,.0f}",
            money_or_unknown(one.saved.cost, currency),
            duration(one.saved.seconds),
        )
        for one in budget
    ]


def stage_rows(budget: Sequence[CategoryBudget]) -> list[tuple[str, ...]]:
    """Return the columns of `MIGHT_HAVE_COST` by category and stage."""
    return [
        (
            f"{one.category}, {stage.stage}",
            f"{stage.worked}",
            f"{stage.skipped}",
            f"{stage.left_out}",
            f"{stage.gained} of {stage.worked}" if stage.worked else UNKNOWN,
            ratio(stage.geometric_mean_gain),
        )
        for one in budget
        for stage in one.stages
    ]


def not_profiled(status: Status, settings: EvaluationSettings) -> str:
    """Return why a verdict has no profile, as far as the settings say."""
    if status is Status.FAST and settings.profile_slow and not settings.profile_fast:
        return "no profile (only made for slow kernels)"
    if status not in (Status.FAST, Status.SLOW):
        return "no profile (only made for correct kernels)"
    return "no profile"


def spent(report: Report) -> str:
    """Return a run's tokens and money in a line; tokens of recorded replies as they were recorded."""
    found = report.overall.tokens
    if not (report.overall.calls.made or found.input.total or found.output.total):
        return f"cost {whole_cost(report)}"
    return f"{count(found.input)} input and {count(found.output)} output tokens, cost {whole_cost(report)}"


def duration(value: float | None) -> str:
    """Return seconds as a person says them."""
    if value is None:
        return UNKNOWN
    if value < 60:
        return f"{value:.1f} s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s"


def times(candidate: float | None, baseline: float | None) -> str:
    """Return both sides of a measurement: "500 µs vs 1.00 ms for PyTorch"."""
    ours, theirs = (UNKNOWN if value is None else kernel_time(value) for value in (candidate, baseline))
    return f"{ours} vs {theirs} for PyTorch"


def machine(facts: RunFacts) -> list[tuple[str, str]]:
    """Return the machine of a run, most important first, without what says nothing: a count of 1, "x86_64"."""
    told = dict(facts.hardware)
    device, arch, count = told.pop("device", None), told.pop("arch", None), told.pop("count", "1")
    rows = []
    if device is not None:
        rows.append(("Device", (f"{count} x " if count != "1" else "") + device + (f", {arch}" if arch else "")))
    cpu, cores = told.pop("cpu", ""), told.pop("cores", None)
    parts = [told.pop("host", ""), "" if cpu in _ARCHITECTURES else cpu, f"{cores} CPU cores" if cores else ""]
    if any(parts):
        rows.append(("Host", ", ".join(filter(None, parts))))
    return [*rows, *((name.capitalize(), value) for name, value in told.items())]


def most_frequent(found: Iterable[FailureCount]) -> list[FailureCount]:
    """Return failures, the most frequent kind first; of equals the earlier stage."""
    return sorted(found, key=lambda failure: -failure.count)


def versions(facts: RunFacts) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(facts.versions.items()))
