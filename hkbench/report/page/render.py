"""From the report and the run's files to the page: one file, no reference out of its folder.

Everything that a model or a tool wrote goes through the templates' escaping. The page's own policy lets no script run
but its own, by its hash, and nothing be loaded.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from hkbench.records import Status
from hkbench.report import words
from hkbench.report.model import (
    AdviceReport,
    DecisionReport,
    Estimate,
    Headline,
    MachineFailure,
    Overall,
    ProblemReport,
    Report,
    SampleReport,
)
from hkbench.report.page.figures import figures
from hkbench.report.page.sample import (
    CODE_LIMIT,
    LOG_LIMIT,
    Content,
    chosen,
    conditions,
    profile_rows,
    read_content,
    work_shares,
)
from hkbench.stats import share_interval
from hkbench.store.layout import RunPaths
from hkbench.store.plain import strip_escapes

WHOLE_SAMPLES = 200  #: up to so many samples all are shown whole, beyond it each problem's best and last

_TEMPLATES = Path(__file__).parents[1] / "templates"
_SIGNS = {Status.FAST: "+", Status.SLOW: "-", Status.INCORRECT: "×", Status.REFUSED: "!", Status.COMPILED: "c"}  # noqa: RUF001


@dataclass(frozen=True)
class SamplePart:
    """A sample: its place in the strip, its line, and all of it where the page shows it."""

    anchor: str
    sign: str
    sample: SampleReport
    line: str
    content: Content | None


@dataclass(frozen=True)
class AttemptPart:
    """An attempt: what led to it, its samples, what was decided at it."""

    number: int
    samples: tuple[SamplePart, ...]
    advice: tuple[AdviceReport, ...]
    decisions: tuple[DecisionReport, ...]


@dataclass(frozen=True)
class ProblemPart:
    anchor: str
    problem: ProblemReport
    folder: str  #: of its samples, relative to the page
    attempts: tuple[AttemptPart, ...]
    best: SamplePart | None

    @property
    def samples(self) -> list[SamplePart]:
        return [sample for attempt in self.attempts for sample in attempt.samples]


def render_page(report: Report, paths: RunPaths) -> str:
    """report.html: the same folder gives the same bytes. Missing files of samples leave their part out."""
    whole = chosen(report.problems, WHOLE_SAMPLES)
    problems = [_problem(paths, number, p, whole) for number, p in enumerate(report.problems, 1)]
    shares = {p.problem.problem: p.best.content.floor_share for p in problems if p.best and p.best.content}
    floors = {name: share for name, share in shares.items() if share is not None}
    script = (_TEMPLATES / "filter.js").read_text(encoding="utf-8")
    return environment().get_template("report.html").render(
        report=report,
        overall=report.overall,
        headlines=_headlines(report.overall),
        cards=_cards(report.overall) if report.config.compiled_for is None else _cards_unmeasured(report),
        figures=figures(report, floors),
        problems=problems,
        floors=floors,
        all_whole=sum(len(p.samples) for p in problems) <= WHOLE_SAMPLES,
        limits={"samples": WHOLE_SAMPLES, "code": CODE_LIMIT, "log": LOG_LIMIT},
        script=Markup(script),  # noqa: S704 - a file of this package
        script_hash=base64.b64encode(sha256(script.encode()).digest()).decode(),
    )  # fmt: skip


def environment() -> jinja2.Environment:
    """The templates of all pages: what is put into them is escaped and stripped."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    made.filters.update(flat=lambda row: (row[0], *row[1]), machine=_machine)
    made.globals.update(
        words=words,
        style=Markup((_TEMPLATES / "style.css").read_text(encoding="utf-8")),  # noqa: S704 - a file of this package
        conditions=conditions,
        profile_rows=profile_rows,
        work_shares=work_shares,
    )
    return made


def _shown(value: Any) -> Any:
    """Text of models and tools without control characters, which HTML does not allow."""
    return strip_escapes(value) if type(value) is str else value


def _machine(failure: MachineFailure) -> tuple[str, ...]:
    return failure.step, failure.error, str(failure.count), failure.last_message


def _problem(paths: RunPaths, number: int, problem: ProblemReport, whole: set[tuple[str, int, int]]) -> ProblemPart:
    parts = []
    parents = {attempt.attempt: attempt.parent for attempt in problem.attempts}
    for sample in problem.samples:
        shown = (problem.problem, sample.attempt, sample.sample) in whole
        content = read_content(paths, problem.problem, sample, parents.get(sample.attempt)) if shown else None
        anchor = f"p{number}-{sample.attempt}-{sample.sample}"
        sign = _SIGNS[sample.status] if sample.status is not None else "?"
        parts.append(SamplePart(anchor, sign, sample, _line(sample), content))
    best = (problem.best_attempt, problem.best_sample)
    return ProblemPart(
        anchor=f"p{number}",
        problem=problem,
        folder=problem.problem,
        attempts=tuple(_attempt(problem, number, parts) for number in problem.steps),
        best=next((part for part in parts if (part.sample.attempt, part.sample.sample) == best), None),
    )


def _attempt(problem: ProblemReport, number: int, parts: Sequence[SamplePart]) -> AttemptPart:
    return AttemptPart(
        number=number,
        samples=tuple(part for part in parts if part.sample.attempt == number),
        advice=tuple(one for one in problem.advice if one.attempt == number),
        decisions=tuple(one for one in problem.decisions if one.attempt == number),
    )


def _line(sample: SampleReport) -> str:
    """What became of a sample, after its status."""
    if sample.status is None:
        return "no verdict"
    if sample.status is Status.COMPILED:
        return "compiled, not measured"
    if sample.speedup is not None:
        one, other = words.kernel_time(sample.candidate_seconds), words.kernel_time(sample.baseline_seconds)
        return f"{words.estimate(sample.speedup)}, {one} against {other}"
    return f"{sample.kind} at {sample.stage}: {sample.message}"


def _share(count: int, total: int) -> str:
    """A share of the judged problems with its 95 % interval."""
    if not total:
        return words.UNKNOWN
    found = share_interval(count, total)
    return f"{words.percent(found.value)} [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def _cards(overall: Overall) -> list[tuple[str, str, str]]:
    """The first things to know: name, figure, what is under it."""
    judged, mean = overall.judged, overall.geometric_mean_speedup
    one = overall.pass_at_k[0].value if overall.pass_at_k else None
    return [
        ("Solved", _plain_share(overall.solved, judged), f"{overall.solved} of {judged} judged problems"),
        ("Correct", _plain_share(overall.correct, judged), f"{overall.correct} of {judged} judged problems"),
        ("Speed-up", words.ratio(mean.value if mean else None), f"geometric mean{_interval(mean)}"),
        ("fast_1", words.percent((overall.fast_p or {}).get("1")), "best sample faster than the baseline"),
        ("pass@1", words.percent(one), "one sample of attempt 1 is correct"),
        ("Samples", f"{overall.samples_correct} / {overall.samples_judged}", "correct of judged"),
    ]


def _cards_unmeasured(report: Report) -> list[tuple[str, str, str]]:
    overall = report.overall
    failed = overall.samples_judged
    return [
        ("Compiled", f"{overall.compiled} / {overall.problems}", words.compiled_of(report)),
        (
            "Samples",
            f"{overall.samples_compiled} / {overall.samples_compiled + failed}",
            "compiled of those with a verdict",
        ),
        ("Measured", "nothing", "--build-only: whether a kernel is correct or fast is not known"),
    ]


def _plain_share(count: int, total: int) -> str:
    return words.percent(count / total if total else None)


def _interval(found: Estimate | None) -> str:
    return f", 95 %: {found.low:.3g} to {found.high:.3g}" if found and found.low and found.high else ""


def _headlines(overall: Overall) -> list[tuple[str, list[str]]]:
    """The headlines by name, over all problems and, where some are weak, over the others."""
    columns: Sequence[Overall | Headline] = (overall, *([overall.without_weak] if overall.without_weak else []))
    rows = [
        ("Problems", [f"{part.problems}, {part.judged} judged" for part in columns]),
        ("Solved", [f"{part.solved}: {_share(part.solved, part.judged)}" for part in columns]),
        ("Correct", [f"{part.correct}: {_share(part.correct, part.judged)}" for part in columns]),
        ("Speed-up, geometric mean", [words.estimate(part.geometric_mean_speedup) for part in columns]),
    ]
    thresholds = [
        (f"fast_{p}", [words.percent((part.fast_p or {}).get(p)) for part in columns]) for p in overall.fast_p or {}
    ]
    chances = [
        (f"pass@{found.k}", [words.percent(part.pass_at_k[index].value) for part in columns])
        for index, found in enumerate(overall.pass_at_k)
    ]
    return [*rows, *thresholds, *chances]
