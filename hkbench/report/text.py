"""detailed_report.txt and what is printed of a run: the report for a person, at most 100 columns, no colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hkbench.device_kinds import model_of
from hkbench.headline import bar, is_timed, not_told, plural
from hkbench.records import TIMED, Layout, Outcome, Ownership
from hkbench.report import cards, format as fmt
from hkbench.report.disagreements import warnings_of
from hkbench.report.format import WIDTH, machine, pairs, table, title, versions, wrapped
from hkbench.report.model import AdviceReport, Headline, Overall, ProblemReport, Report, SampleReport, TokenCount
from hkbench.report.record import CardsReport
from hkbench.store.sanitize import one_line

_BAR = 60  #: columns of the bar of problems by class


def render_text(report: Report, *, definitions: bool = True) -> str:
    """Return the whole text, ending with a newline; without what the words mean, for a terminal."""
    overall = report.overall
    sections = [
        _head(report),
        _overall(report),
        _weak(report),
        problem_table(report.problems),
        *([_gains(overall)] if len(overall.attempts) > 1 else []),
        _failures(overall),
        _tokens(report),
        *([_cards(report.cards)] if report.cards is not None else []),
        *([_budget(report)] if overall.budget else []),
        *([_damage(report)] if report.damage else []),
        _samples(report.problems, report.config.strategy.layout),
        *([_definitions(report)] if definitions else []),
    ]
    return "\n\n".join("\n".join(line.rstrip() for line in section) for section in sections) + "\n"


def _head(report: Report) -> list[str]:
    """Return the title, the result, what takes from it, then where and with what it was reached."""
    config, facts = report.config, report.facts
    lines = [*wrapped(report.title)]
    lines.append("=" * max(map(len, lines)))
    if not report.complete:
        lines += [*wrapped("INCOMPLETE: " + (report.incomplete_because or "")), ""]
    lines += headline_lines(report)
    settings = [
        ("Started", f"{facts.started}, hkbench {facts.hkbench}"),
        *([("Replies", f"recorded, from {config.replay}")] if config.replay else []),
        *machine(facts),
        ("Versions", versions(facts)),
        (
            "Plan",
            f"{plural(len(config.problems), 'problem')}, up to {plural(config.attempts, 'attempt')} of "
            f"{plural(config.samples, 'sample')}, strategy {config.strategy.name}, {config.sizes} sizes",
        ),
    ]
    return [*lines, "", *pairs(settings)]


def headline_lines(report: Report) -> list[str]:
    """Return the result in a sentence, whose kernels it counts, a bar of the classes, contradicting measurements."""
    lines = [line for sentence in report.headline for line in wrapped(sentence)]
    columns = bar(report.overall.outcomes, _BAR)
    if columns:
        key = ", ".join(f"{outcome.sign} {outcome.label} {report.overall.outcomes[outcome]}" for outcome, _ in columns)
        lines += [f"[{''.join(outcome.sign * width for outcome, width in columns)}]", *wrapped(key)]
    for warning in warnings_of(report.disagreements):
        lines += wrapped(f"WARNING: {warning}")
    return lines


def _overall(report: Report) -> list[str]:
    overall = report.overall
    rows = [
        ("Finished", f"{overall.finished} of {plural(overall.problems, 'problem')}; {overall.judged} judged"),
        *_result_rows(report, overall),
        ("Samples", _sample_counts(overall)),
        ("Languages", _languages(report)),
        ("Wall time", f"{fmt.duration(overall.wall_seconds)} in {plural(overall.sessions, 'session')}"),
        (
            "Work",
            f"{fmt.duration(overall.generation_seconds)} of model calls and "
            f"{fmt.duration(overall.evaluation_seconds)} of evaluations, summed (they run in parallel)",
        ),
    ]
    return [*title("Overall"), *pairs(rows)]


def _weak(report: Report) -> list[str]:
    """Return the headlines once more without the weak problems, or in a line why there is nothing to leave out."""
    overall = report.overall
    without = overall.without_weak
    lines = title("Without the weak problems")
    if report.facts.weak is None:
        return [*lines, "not known: this run was made before problems were audited"]
    unknown = f"{len(overall.not_audited)} of {overall.problems} problems were not audited"
    if without is None:
        if len(overall.not_audited) == overall.problems:
            return [*lines, f"not known: {unknown} (hkbench audit)"]
        return [*lines, "no problem is weak: all figures stand" + (f"; {unknown}" if overall.not_audited else "")]
    rows = [("Problems", f"{without.problems} of {overall.problems}; {without.judged} judged")]
    lines += pairs([*rows, *_result_rows(report, without), ("Left out", ", ".join(overall.weak_problems))])
    return [*lines, unknown] if overall.not_audited else lines


def _result_rows(report: Report, overall: Overall | Headline) -> list[tuple[str, str]]:
    if is_timed(report.config):
        return _headline_rows(overall)
    if report.config.compiled_for is None:
        return [
            ("Correct", fmt.share_of(overall.correct, overall.judged)),
            ("Timed", f"nothing ({model_of(report.config.device).label}): speed-up and fast_p are unknown"),
            _pass_at_k(overall),
        ]
    return [
        ("Compiled", fmt.compiled_of(report)),
        ("Measured", "nothing (--build-only): solved, correct, speed-up, fast_p and pass@k are unknown"),
    ]


def _headline_rows(overall: Overall | Headline) -> list[tuple[str, str]]:
    judged = overall.judged
    mean, whole = overall.geometric_mean_speedup, overall.geometric_mean_speedup_all
    own = overall.own_kernels
    rows = [
        ("Correct", fmt.share_of(overall.correct, judged)),
        ("Solved", f"{fmt.share_of(overall.solved, judged)} (correct, speed-up >= 1.0 by the estimate)"),
        ("Speed-up", f"{fmt.estimate(mean)} geometric mean over the {plural(overall.correct, 'correct problem')}"),
        ("", f"{fmt.estimate(whole)} over all {judged}, with 1x where no kernel is correct and faster"),
    ]
    for name, over in overall.over_baselines.items():
        rows.append((f"Over {name}", f"{fmt.estimate(over)} geometric mean of the speed-ups over that baseline"))
    if overall.sol is not None:
        bounds = ", ".join(f"{count} {bound}" for bound, count in overall.sol_bounds.items())
        rows.append(("Of the floor", f"{fmt.percent(overall.sol.value)} geometric mean (bounds: {bounds})"))
    if own.faster:
        unsure = not_told(own.not_established, own.not_profiled)
        unknown = f" ({', '.join(unsure)})" if unsure else ""
        rows.append(
            ("Own kernels", f"did the work in {own.own} of the {plural(own.faster, 'faster problem')}{unknown}")
        )
    return [
        *rows,
        ("fast_p", f"{fmt.fast_p(overall.fast_p)} (speed-up > p)"),
        *(
            [("fast_p, best", f"{fmt.fast_p(overall.fast_p_over_best)} (over the fastest baseline)")]
            if overall.fast_p_over_best is not None
            else []
        ),
        _pass_at_k(overall),
    ]


def _pass_at_k(overall: Overall | Headline) -> tuple[str, str]:
    chances = (f"k={p.k}: {fmt.percent(p.value)} ({plural(p.problems, 'problem')})" for p in overall.pass_at_k)
    return ("pass@k", ", ".join(chances))


def _sample_counts(overall: Overall) -> str:
    compiled = f", {overall.samples_compiled} compiled, not measured" if overall.samples_compiled else ""
    refused = f", {overall.samples_refused} refused" if overall.samples_refused else ""
    return f"{overall.samples_correct} correct of {overall.samples_judged} judged{refused}{compiled}"


def _languages(report: Report) -> str:
    """Return what was asked for, and what the samples' kernels are."""
    found = report.overall.languages
    listed = ", ".join(f"{one.count} {one.language or 'not known'}" for one in found)
    return f"asked for {report.config.backend}; samples: {listed or 'none'}"


def _gains(overall: Overall) -> list[str]:
    rows = [
        (
            f"{gain.attempt}",
            f"{gain.problems_tried}",
            f"{gain.solved}",
            f"+{gain.newly_solved}",
            f"{gain.correct}",
            fmt.ratio(gain.geometric_mean_speedup),
        )
        for gain in overall.attempts
    ]
    header = ("after attempt", "problems in it", "solved", "gained", "correct", "mean of these")
    return [*title("Progress over attempts"), *table(header, rows, right=range(6))]


def problem_table(problems: Sequence[ProblemReport]) -> list[str]:
    priced = any(problem.cost.currency is not None for problem in problems)
    rows = [
        (
            one_line(problem.problem, WIDTH) + (" (weak)" if problem.weak else ""),
            fmt.outcome(problem),
            fmt.estimate(problem.best_speedup),
            fmt.own(problem.own, problem.ownership),
            problem.language or fmt.UNKNOWN,
            f"{problem.best_attempt}.{problem.best_sample}" if problem.best_attempt else fmt.UNKNOWN,
            f"{problem.correct_samples}/{problem.judged}",
            fmt.count(problem.tokens.output),
            *([fmt.cost(problem.cost)] if priced else []),
            fmt.duration(problem.evaluation_seconds),
        )
        for problem in problems
    ]
    note = wrapped(
        '"own": share of the work done by the best kernel\'s own code (-: not profiled, ?: not established); "from": '
        'attempt.sample of the best kernel; "out": output tokens; "judged in": time of evaluations, summed; '
        "*: unfinished"
    )
    priced_column = ["cost"] if priced else []
    header = (
        "problem", "outcome", "best speed-up", "own", "language", "from", "correct", "out", *priced_column, "judged in",
    )  # fmt: skip
    return [*title("Problems"), *table(header, rows, right=(3, *range(5, len(header)))), *note]


def _failures(overall: Overall) -> list[str]:
    lines = title("Failures of candidates")
    if overall.model_failures:
        rows = [(f.stage, f.kind, f"{f.count}") for f in fmt.most_frequent(overall.model_failures)]
        lines += table(("stage", "kind", "samples"), rows, right=(2,))
    else:
        lines.append("none")
    lines += ["", *title("Infrastructure failures (never counted against the model)")]
    if not overall.machine_failures:
        return [*lines, "none"]
    for failure in overall.machine_failures:
        lines += wrapped(f"{failure.step}: {failure.error} x {failure.count}; last: {failure.last_message}")
    return lines


def _tokens(report: Report) -> list[str]:
    tokens, calls, roles = report.overall.tokens, report.overall.calls, report.overall.roles
    rows = [
        ("Input", _tokens_line(tokens.input, tokens.cached_input, "cached")),
        ("Output", _tokens_line(tokens.output, tokens.reasoning, "reasoning")),
        (
            "Calls",
            f"{calls.made} made, {calls.replayed} replayed, {calls.retries} retries, {calls.failed} given up",
        ),
        ("Cost", fmt.whole_cost(report)),
        *([("Price", fmt.price(report.facts.price))] if report.facts.price is not None else []),
        *(
            [("Judge's", f"price {fmt.price(report.facts.judge_price)}")]
            if report.facts.judge_price is not None
            else []
        ),
        *([(role.role.replace("_", " ").capitalize(), fmt.of_role(role)) for role in roles] if len(roles) > 1 else []),
    ]
    return [*title("Tokens, money and model calls"), *pairs(rows)]


def _tokens_line(whole: TokenCount, part: TokenCount, name: str) -> str:
    unknown = plural(whole.unreported_replies, "reply", "replies")
    silent = f"; {unknown} without token counts" if whole.unreported_replies else ""
    return f"{fmt.count(whole)} ({name}: {fmt.count(part)}){silent}"


def _cards(found: CardsReport) -> list[str]:
    lines = [*title("Cards"), *table(cards.HEADER, cards.rows(found), right=cards.RIGHT), ""]
    return [*lines, *(line for note in cards.notes(found) for line in wrapped(note))]


def _budget(report: Report) -> list[str]:
    budget = report.overall.budget or ()
    saved = table(fmt.SAVED, fmt.saved_rows(budget, report.overall.cost.currency), right=range(1, 9))
    stages = table(fmt.MIGHT_HAVE_COST, fmt.stage_rows(budget), right=range(1, 6))
    lines = title("What skipping and early exits saved, and might have cost")
    return [*lines, *saved, "", *stages, *wrapped(fmt.BUDGET_NOTE)]


def _damage(report: Report) -> list[str]:
    lines = title("Parts of the run folder that could not be read")
    for damage in report.damage:
        where = damage.file if damage.line is None else f"{damage.file}, line {damage.line}"
        lines += wrapped(f"{where}: {damage.message}")
    return lines


def _samples(problems: Iterable[ProblemReport], layout: Layout) -> list[str]:
    lines = title("Samples")
    for problem in problems:
        best = " ".join(fmt.ratio(attempt.best_speedup_so_far) for attempt in problem.attempts)
        lines += wrapped(problem.problem + (f": best after each attempt {best}" if best else ""))
        if problem.error is not None:
            lines += wrapped(f"ended early: {problem.error}", "  ")
        if not problem.samples:
            lines.append("  none")
        for attempt, before in problem.drawn(layout, [sample.attempt for sample in problem.samples]):
            step = problem.step(attempt) if layout is Layout.TREE else None
            for sample in (one for one in problem.samples if one.attempt == attempt):
                where = f"  {before}{attempt}.{sample.sample}  " + (f"{step}  " if step is not None else "")
                lines += wrapped(sample_line(sample), where, " " * len(where))
    return lines


def advice_lines(advice: AdviceReport) -> list[str]:
    """Return what was said of a kernel, a line a field."""
    about = f" on {advice.about.attempt}/{advice.about.sample}" if advice.about is not None else ""
    kind = f", {advice.kind}" if advice.kind is not None else ""
    head = f"{advice.role.replace('_', ' ')} {advice.call}{about}{kind}" + (
        f": {advice.note}" if advice.note is not None else ""
    )
    said = (advice.said or {}).items()
    return [head, *(f"{name.replace('_', ' ')}: {one_line(text, 1000)}" for name, text in said)]


def sample_line(sample: SampleReport, *, named: bool = True) -> str:
    """Return what became of a sample; `named`: with the name of its outcome in front."""
    if sample.outcome in (Outcome.NOT_JUDGED, Outcome.COMPILED):
        return "no verdict" if sample.outcome is Outcome.NOT_JUDGED else "compiled, not measured"
    if sample.outcome is Outcome.EMULATED:
        return "correct on an emulated GPU, not timed"
    label = sample.outcome.label if named else ""
    if sample.outcome in TIMED:
        own = "not profiled" if sample.own is None else f"own kernels {fmt.own(sample.own)}"
        if sample.ownership is Ownership.NOT_ESTABLISHED:
            own = "whose work it was is not established"
        times = fmt.times(sample.candidate_seconds, sample.baseline_seconds)
        beside = [f"{fmt.estimate(over)} over {name}" for name, over in sample.over_baselines.items()]
        beside += [f"{fmt.percent(sample.sol.fraction)} of the {sample.sol.bound} floor"] if sample.sol else []
        further = sample.shapes
        shapes = [] if further is None else [f"right on {further.right} of {further.checked} further shapes"]
        said = "; ".join([*beside, own, *shapes])
        return f"{label}  {fmt.estimate(sample.speedup)}  {times}; {said}".strip()
    return f"{label}, {sample.kind} at {sample.stage}: {sample.message}".removeprefix(", ")


def _definitions(report: Report) -> list[str]:
    lines = title("What the words mean")
    for word, meaning in report.definitions.items():
        lines += wrapped(f"{word}: {meaning}", "", "  ")
    return lines
