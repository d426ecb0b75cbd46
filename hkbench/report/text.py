"""detailed_report.txt: the report for a person, at most 100 columns, no colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hkbench.records import Status
from hkbench.report import words
from hkbench.report.model import AdviceReport, Headline, Overall, ProblemReport, Report, SampleReport, TokenCount
from hkbench.report.words import WIDTH, pairs, table, title, wrapped
from hkbench.store.plain import one_line


def render_text(report: Report) -> str:
    """The whole text, ending with a newline."""
    sections = [
        _head(report),
        _overall(report),
        _weak(report),
        _gains(report.overall),
        problem_table(report.problems),
        _failures(report.overall),
        _tokens(report),
        *([_budget(report)] if report.overall.budget else []),
        *([_damage(report)] if report.damage else []),
        _samples(report.problems),
        _definitions(report),
    ]
    return "\n\n".join("\n".join(line.rstrip() for line in section) for section in sections) + "\n"


def _head(report: Report) -> list[str]:
    config, facts = report.config, report.facts
    lines = [*title("hkbench report", "=")]
    if not report.complete:
        lines += [*wrapped("INCOMPLETE: " + (report.incomplete_because or "")), ""]
    plan = (
        f"{len(config.problems)} problems, up to {config.attempts} attempts of {config.samples} samples, "
        f"strategy {config.strategy}"
    )
    settings = [
        ("Started", f"{facts.started}, hkbench {facts.hkbench}"),
        ("Model", config.model + (f", replayed from {config.replay}" if config.replay else "")),
        ("Backend", f"{config.backend} on {config.device}, {config.sizes} sizes"),
        *((name.capitalize(), value) for name, value in sorted(facts.hardware.items())),
        ("Versions", ", ".join(f"{name} {value}" for name, value in sorted(facts.versions.items()))),
        ("Plan", plan),
    ]
    return [*lines, *pairs(settings)]


def _overall(report: Report) -> list[str]:
    overall = report.overall
    rows = [
        ("Finished", f"{overall.finished} of {overall.problems} problems; {overall.judged} judged"),
        *(_headline_rows(overall) if report.config.compiled_for is None else _unmeasured_rows(report)),
        ("Samples", _sample_counts(overall)),
        ("Written in", _languages(report)),
        ("Wall time", f"{words.duration(overall.wall_seconds)} in {overall.sessions} session(s)"),
        (
            "Work",
            f"{words.duration(overall.generation_seconds)} of model calls, "
            f"{words.duration(overall.evaluation_seconds)} of evaluations, which overlap",
        ),
    ]
    return [*title("Overall"), *pairs(rows)]


def _weak(report: Report) -> list[str]:
    """The headlines once more without the weak problems, or in a line why there is nothing to leave out."""
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
    lines += pairs([*rows, *_headline_rows(without), ("Left out", ", ".join(overall.weak_problems))])
    return [*lines, unknown] if overall.not_audited else lines


def _unmeasured_rows(report: Report) -> list[tuple[str, str]]:
    return [
        ("Compiled", words.compiled_of(report)),
        ("Measured", "nothing (--build-only): solved, correct, speed-up, fast_p and pass@k are not known"),
    ]


def _headline_rows(overall: Overall | Headline) -> list[tuple[str, str]]:
    judged = overall.judged
    mean = overall.geometric_mean_speedup
    return [
        ("Solved", f"{words.share_of(overall.solved, judged)} (correct, speed-up at least 1.0)"),
        ("Correct", words.share_of(overall.correct, judged)),
        (
            "Speed-up",
            f"{words.estimate(mean)} geometric mean of the best kernel of {overall.correct} correct problems",
        ),
        ("fast_p", words.fast_p(overall.fast_p)),
        (
            "pass@k",
            ", ".join(f"k={p.k}: {words.percent(p.value)} ({p.problems} problems)" for p in overall.pass_at_k),
        ),
    ]


def _sample_counts(overall: Overall) -> str:
    compiled = f", {overall.samples_compiled} compiled, not measured" if overall.samples_compiled else ""
    refused = f", {overall.samples_refused} refused" if overall.samples_refused else ""
    return f"{overall.samples_correct} correct of {overall.samples_judged} judged{refused}{compiled}"


def _languages(report: Report) -> str:
    """What was asked for, and what the samples' kernels are."""
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
            words.ratio(gain.geometric_mean_speedup),
        )
        for gain in overall.attempts
    ]
    header = ("after attempt", "problems in it", "solved", "gained", "correct", "mean of these")
    return [*title("What each attempt gained"), *table(header, rows, right=range(6))]


def problem_table(problems: Sequence[ProblemReport]) -> list[str]:
    priced = any(problem.cost.currency is not None for problem in problems)
    rows = [
        (
            one_line(problem.problem, WIDTH) + (" (weak)" if problem.weak else ""),
            words.outcome(problem),
            words.estimate(problem.best_speedup),
            f"{problem.best_attempt}.{problem.best_sample}" if problem.best_attempt else words.UNKNOWN,
            f"{problem.correct_samples}/{problem.judged}",
            words.count(problem.tokens.output),
            *([words.cost(problem.cost)] if priced else []),
            words.duration(problem.wall_seconds),
        )
        for problem in problems
    ]
    note = "from: attempt.sample of the best; out: output tokens; *: not finished"
    header = ("problem", "outcome", "best speed-up", "from", "correct", "out", *(["cost"] if priced else []), "wall")
    return [*title("Problems"), *table(header, rows, right=range(3, len(header))), note]


def _failures(overall: Overall) -> list[str]:
    lines = title("Failures of candidates")
    if overall.model_failures:
        rows = [(f.stage, f.kind, f"{f.count}") for f in overall.model_failures]
        lines += table(("stage", "kind", "samples"), rows, right=(2,))
    else:
        lines.append("none")
    lines += ["", *title("Failures of the machine or the service (not the model's)")]
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
        ("Cost", words.whole_cost(report)),
        *([("Price", words.price(report.facts.price))] if report.facts.price is not None else []),
        *(
            [("Judge's", f"price {words.price(report.facts.judge_price)}")]
            if report.facts.judge_price is not None
            else []
        ),
        *([(role.role.capitalize(), words.of_role(role)) for role in roles] if len(roles) > 1 else []),
    ]
    return [*title("Tokens, money and model calls"), *pairs(rows)]


def _tokens_line(whole: TokenCount, part: TokenCount, name: str) -> str:
    silent = f"; {whole.unreported_replies} replies did not say" if whole.unreported_replies else ""
    return f"{words.count(whole)} ({name}: {words.count(part)}){silent}"


def _budget(report: Report) -> list[str]:
    budget = report.overall.budget or ()
    saved = table(words.SAVED, words.saved_rows(budget, report.overall.cost.currency), right=range(1, 9))
    stages = table(words.MIGHT_HAVE_COST, words.stage_rows(budget), right=range(1, 6))
    lines = title("What skipping and early exits saved, and might have cost")
    return [*lines, *saved, "", *stages, *wrapped(words.BUDGET_NOTE)]


def _damage(report: Report) -> list[str]:
    lines = title("Parts of the run folder that could not be read")
    for damage in report.damage:
        where = damage.file if damage.line is None else f"{damage.file}, line {damage.line}"
        lines += wrapped(f"{where}: {damage.message}")
    return lines


def _samples(problems: Iterable[ProblemReport]) -> list[str]:
    lines = title("Samples")
    for problem in problems:
        best = " ".join(words.ratio(attempt.best_speedup_so_far) for attempt in problem.attempts)
        lines += wrapped(problem.problem + (f": best after each attempt {best}" if best else ""))
        if problem.error is not None:
            lines += wrapped(f"ended early: {problem.error}", "  ")
        if not problem.samples:
            lines.append("  none")
        for sample in problem.samples:
            where = f"  {sample.attempt}.{sample.sample}  "
            lines += wrapped(sample_line(sample), where, " " * len(where))
    return lines


def advice_lines(advice: AdviceReport) -> list[str]:
    """What the judge said, a line a field."""
    about = f" on {advice.about.attempt}/{advice.about.sample}" if advice.about is not None else ""
    kind = f", {advice.kind}" if advice.kind is not None else ""
    head = f"judge {advice.call}{about}{kind}" + (f": {advice.note}" if advice.note is not None else "")
    said = (advice.said or {}).items()
    return [head, *(f"{name.replace('_', ' ')}: {one_line(text, 1000)}" for name, text in said)]


def sample_line(sample: SampleReport) -> str:
    if sample.status is None:
        return "no verdict"
    if sample.status is Status.COMPILED:
        return "compiled, not measured"
    if sample.speedup is not None:
        times = f"{words.kernel_time(sample.candidate_seconds)} against {words.kernel_time(sample.baseline_seconds)}"
        return f"{sample.status}  {words.estimate(sample.speedup)}  {times}"
    return f"{sample.status}  {sample.kind} at {sample.stage}: {sample.message}"


def _definitions(report: Report) -> list[str]:
    lines = title("What the words mean")
    for word, meaning in report.definitions.items():
        lines += wrapped(f"{word}: {meaning}", "", "  ")
    return lines
