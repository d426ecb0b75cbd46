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
from markupsafe import Markup, escape

from hkbench.headline import is_timed, plural, title_parts
from hkbench.records import Layout, Outcome
from hkbench.report import cards as of_cards, format as fmt
from hkbench.report.disagreements import warnings_of
from hkbench.report.model import (
    AdviceReport,
    DecisionReport,
    ProblemReport,
    Report,
    SampleReport,
)
from hkbench.report.page.figures import figures
from hkbench.report.page.result import bar_parts, beside_the_cards, cards, headlines_without_weak, rows
from hkbench.report.page.sample import (
    CODE_LIMIT,
    LOG_LIMIT,
    PROMPT_LIMIT,
    Content,
    Cut,
    chosen,
    conditions,
    profile_rows,
    read_content,
    read_prompt,
    read_reference,
    work_shares,
)
from hkbench.report.page.way import WayStep, gain_text, way
from hkbench.report.text import sample_line
from hkbench.store.layout import RunPaths
from hkbench.store.sanitize import strip_escapes

WHOLE_SAMPLES = 200  #: up to so many samples all are shown whole, beyond it each problem's best and last

_TEMPLATES = Path(__file__).parents[1] / "templates"


@dataclass(frozen=True)
class SamplePart:
    """A sample: its place in the strip, its line, and all of it where the page shows it."""

    anchor: str
    sample: SampleReport
    line: str
    content: Content | None

    @property
    def place(self) -> str:
        return f"{self.sample.attempt}.{self.sample.sample}"

    @property
    def words(self) -> str:
        """What the filter looks at, besides the problem's name."""
        found = self.sample
        status = found.status or "no verdict"
        return f"{found.outcome} {found.outcome.label} {status} {found.kind or ''} {found.language or ''}"


@dataclass(frozen=True)
class AttemptPart:
    """An attempt: what led to it, its samples, what was decided at it."""

    number: int
    name: str  #: with the lines of a tree before it, and the step that it is
    gain: str | None  #: over its parent
    led_to_best: bool
    samples: tuple[SamplePart, ...]
    prompt: Cut | None
    advice: tuple[AdviceReport, ...]
    decisions: tuple[DecisionReport, ...]


@dataclass(frozen=True)
class ProblemPart:
    anchor: str
    problem: ProblemReport
    reference: Markup | None
    attempts: tuple[AttemptPart, ...]
    best: SamplePart | None
    way: tuple[WayStep, ...]  #: to the best

    @property
    def samples(self) -> list[SamplePart]:
        return [sample for attempt in self.attempts for sample in attempt.samples]


def render_page(report: Report, paths: RunPaths) -> str:
    """Return report.html: the same folder gives the same bytes. Missing files of samples leave their part out."""
    whole = chosen(report.problems, WHOLE_SAMPLES)
    all_whole = sum(len(problem.samples) for problem in report.problems) <= WHOLE_SAMPLES
    problems = [
        _problem(paths, number, p, whole, report.config.strategy.layout) for number, p in enumerate(report.problems, 1)
    ]
    shares = {p.problem.problem: p.best.content.floor_share for p in problems if p.best and p.best.content}
    floors = {name: share for name, share in shares.items() if share is not None}
    axis, judged, unjudged = rows(report.problems, {p.problem.problem: p.anchor for p in problems}, floors)
    script = (_TEMPLATES / "page.js").read_text(encoding="utf-8")
    model, *about = title_parts(report.config, report.facts)
    return environment().get_template("report.html").render(
        report=report,
        overall=report.overall,
        model=model,
        about=about,
        warnings=warnings_of(report.disagreements),
        bar=bar_parts(report.overall.outcomes),
        cards=cards(report),
        beside=beside_the_cards(report),
        without_weak=headlines_without_weak(report.overall),
        figures=figures(report),
        failures=fmt.most_frequent(report.overall.model_failures),
        axis=axis,
        judged=judged,
        unjudged=unjudged,
        problems=problems,
        floors=floors,
        timed=is_timed(report.config),
        all_whole=all_whole,
        limits={"samples": WHOLE_SAMPLES, "code": CODE_LIMIT, "log": LOG_LIMIT, "prompt": PROMPT_LIMIT},
        script=Markup(script),  # noqa: S704 - a file of this package
        script_hash=base64.b64encode(sha256(script.encode()).digest()).decode(),
    )  # fmt: skip


def environment() -> jinja2.Environment:
    """Return the templates of all pages: what is put into them is escaped and stripped."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    made.filters.update(
        flat=lambda row: (row[0], *row[1]),
        machine=lambda one: (one.step, one.error, str(one.count), one.last_message),
        spent=_spent,
        breakable=_breakable,
    )
    made.globals.update(
        fmt=fmt,
        of_cards=of_cards,
        plural=plural,
        outcomes=tuple(Outcome),
        style=Markup((_TEMPLATES / "style.css").read_text(encoding="utf-8")),  # noqa: S704 - a file of this package
        conditions=conditions,
        profile_rows=profile_rows,
        work_shares=work_shares,
    )
    return made


def _shown(value: Any) -> Any:
    """Return text of models and tools without control characters, which HTML does not allow."""
    return strip_escapes(value) if type(value) is str else value


def _breakable(name: str) -> Markup:
    """Return a problem's name that may be broken after its underscores."""
    return Markup(str(escape(_shown(name))).replace("_", "_<wbr>"))  # noqa: S704 - escaped


def _spent(part: ProblemPart) -> tuple[str, ...]:
    problem = part.problem
    return (
        problem.problem,
        fmt.duration(problem.generation_seconds),
        fmt.duration(problem.evaluation_seconds),
        fmt.count(problem.tokens.input),
        fmt.count(problem.tokens.output),
        fmt.cost(problem.cost),
    )


def _problem(
    paths: RunPaths, number: int, problem: ProblemReport, whole: set[tuple[str, int, int]], layout: Layout
) -> ProblemPart:
    parts = []
    parents = {attempt.attempt: attempt.parent for attempt in problem.attempts}
    for sample in problem.samples:
        shown = (problem.problem, sample.attempt, sample.sample) in whole
        content = read_content(paths, problem.problem, sample, parents.get(sample.attempt)) if shown else None
        parts.append(
            SamplePart(f"p{number}-{sample.attempt}-{sample.sample}", sample, sample_line(sample, named=False), content)
        )
    best = (problem.best_attempt, problem.best_sample)
    folder = paths.problem(problem.problem)
    return ProblemPart(
        anchor=f"p{number}",
        problem=problem,
        reference=read_reference(folder),
        attempts=tuple(
            _attempt(paths, problem, attempt, _name(problem, attempt, before, layout), parts)
            for attempt, before in problem.drawn(layout, problem.steps)
        ),
        best=next((part for part in parts if (part.sample.attempt, part.sample.sample) == best), None),
        way=way(problem),
    )


def _name(problem: ProblemReport, attempt: int, before: str, layout: Layout) -> str:
    if layout is not Layout.TREE:
        return f"attempt {attempt}"
    step = problem.step(attempt)
    return f"{before}{attempt}" + (f" {step}" if step is not None else "")


def _attempt(
    paths: RunPaths, problem: ProblemReport, number: int, name: str, parts: Sequence[SamplePart]
) -> AttemptPart:
    known = next((one for one in problem.attempts if one.attempt == number), None)
    return AttemptPart(
        number=number,
        name=name,
        gain=gain_text(known) if known is not None else None,
        led_to_best=known is not None and known.led_to_best,
        samples=tuple(part for part in parts if part.sample.attempt == number),
        prompt=read_prompt(paths.problem(problem.problem), number),
        advice=tuple(one for one in problem.advice if one.attempt == number),
        decisions=tuple(one for one in problem.decisions if one.attempt == number),
    )
