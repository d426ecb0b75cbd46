"""What the page shows of a sample beyond its line in the report: code, diff, build log, conditions, profile."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup
from pydantic import ValidationError

from hkbench.records import KernelProfile, RuleSet, Shapes, Verdict, Work
from hkbench.records.profile import Figure
from hkbench.report import format as fmt
from hkbench.report.model import Place, ProblemReport, SampleReport
from hkbench.report.page.error_lines import error_lines
from hkbench.report.page.highlight import code_html, diff_html
from hkbench.store.figures import kernel_time
from hkbench.store.layout import ProblemPaths, RunPaths, SamplePaths
from hkbench.store.sample import whole_prompt
from hkbench.store.sanitize import strip_escapes

CODE_LIMIT = 60_000  #: characters of a candidate on the page
LOG_LIMIT = 4_000  #: characters of a build log, a traceback or a candidate's output
PROMPT_LIMIT = 12_000  #: characters of a prompt
KERNELS = 12  #: of a profile
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_MODEL = re.compile(r"^class Model\b", re.MULTILINE)


@dataclass(frozen=True)
class Cut:
    """A text of a tool or of a candidate, and how many characters of it are not shown."""

    text: str
    left_out: int


@dataclass(frozen=True)
class Content:
    """All of one sample. `None`: it is not there, or could not be read."""

    verdict: Verdict | None
    code: Markup | None
    marked: list[int]  #: lines of the code that its error names
    code_left_out: int  #: characters
    parent: str | None  #: attempt.sample that its prompt tells of, where that has code
    diff: Markup | None  #: to the parent; `None` too where the code is the same
    log: Cut | None  #: what the tool that failed said
    output: Cut | None  #: what the candidate printed
    files: tuple[tuple[str, str], ...]  #: name and address, from the page's folder

    @property
    def floor_share(self) -> float | None:
        """The least time that the device can take over the time taken, 0..1."""
        verdict = self.verdict
        if verdict is None or verdict.floor is None or verdict.candidate is None:
            return None
        return verdict.floor.seconds / verdict.candidate.median.value


def chosen(problems: tuple[ProblemReport, ...], limit: int) -> set[tuple[str, int, int]]:
    """Return keys of the samples shown whole: all, or beyond `limit` of them each problem's best and last."""
    if sum(len(problem.samples) for problem in problems) <= limit:
        return {(p.problem, sample.attempt, sample.sample) for p in problems for sample in p.samples}
    found = set()
    for problem in problems:
        if problem.best_attempt is not None and problem.best_sample is not None:
            found.add((problem.problem, problem.best_attempt, problem.best_sample))
        if problem.samples:
            found.add((problem.problem, problem.samples[-1].attempt, problem.samples[-1].sample))
    return found


def read_content(paths: RunPaths, problem: str, sample: SampleReport, parent: Place | None) -> Content:
    """Return the sample's files.

    One that is missing or damaged leaves its part out. `parent`: what its prompt tells of.
    """
    folder = paths.problem(problem).sample(sample.attempt, sample.sample)
    verdict = _verdict(folder) if sample.status is not None else None  # the reader refused it: a time of 0, or damage
    failure = verdict.failure if verdict is not None else None
    source = _text(folder.code)
    marked = frozenset[int]()
    if source is not None and failure is not None:
        marked = error_lines(source, failure.message, failure.detail or "")
        marked |= frozenset() if failure.line is None else {failure.line}
    before = None
    if parent is not None:
        before = _text(paths.problem(problem).sample(parent.attempt, parent.sample).code)
    files = (folder.code, folder.response, folder.extraction, folder.result, folder.assembly)
    return Content(
        verdict=verdict,
        code=code_html(source[:CODE_LIMIT], marked) if source is not None else None,
        marked=sorted(marked),
        code_left_out=max(0, len(source) - CODE_LIMIT) if source is not None else 0,
        parent=f"{parent.attempt}.{parent.sample}" if parent is not None and before is not None else None,
        diff=diff_html(before[:CODE_LIMIT], source[:CODE_LIMIT]) if before and source else None,
        log=_cut(failure.detail) if failure is not None else None,
        output=_cut(verdict.output) if verdict is not None else None,
        files=tuple((path.name, quote(str(path.relative_to(paths.root)))) for path in files if path.exists()),
    )


def _verdict(folder: SamplePaths) -> Verdict | None:
    try:
        return Verdict.model_validate_json(folder.result.read_bytes())
    except (OSError, ValidationError):
        return None


def _text(path: Path) -> str | None:
    try:
        return strip_escapes(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None


def read_prompt(folder: ProblemPaths, attempt: int) -> Cut | None:
    """Return the prompt of an attempt with its system message; `None` where there is no file."""
    text = _text(folder.prompt(attempt))
    return None if text is None else _cut(whole_prompt(_text(folder.system(attempt)), text), PROMPT_LIMIT)


def read_reference(folder: ProblemPaths) -> Markup | None:
    """Return the problem's file; of a run that kept none, what the first prompt quotes of it."""
    source = _text(folder.reference)
    if source is not None:
        return code_html(source[:CODE_LIMIT])
    blocks = _BLOCK.findall(_text(folder.prompt(1)) or "")
    return next((code_html(block) for block in blocks if _MODEL.search(block)), None)


def _cut(text: str | None, limit: int = LOG_LIMIT) -> Cut | None:
    """Return a long text without its middle: compilers name the cause first, tracebacks last."""
    clean = strip_escapes(text or "").strip("\n")
    if len(clean) <= limit:
        return Cut(clean, 0) if clean else None
    first, left_out = limit * 3 // 4, len(clean) - limit
    return Cut(f"{clean[:first]}\n[... {left_out:,} characters ...]\n{clean[first + left_out :]}", left_out)


def conditions(verdict: Verdict) -> list[tuple[str, str]]:
    """Return how the verdict was reached, as names and words; what is not known is left out."""
    given, isolation = verdict.conditions, verdict.conditions.isolation
    missing = f"; missing: {'; '.join(isolation.missing)}" if isolation.missing else ""
    rows = [
        ("Device", given.device_name + (f", {given.arch}" if given.arch else "")),
        ("Backend", f"{given.backend}, {given.sizes} sizes, track {given.track}, {given.rules} rules"),
        ("Versions", ", ".join(f"{name} {value}" for name, value in sorted(given.versions.items()))),
        ("Isolation", f"{isolation.level} by {', '.join(isolation.layers)}{missing}"),
        ("Trials", "; ".join(f"inputs {t.drawn}, {t.parameters} parameters" for t in verdict.trials)),
        ("Further shapes", "" if verdict.shapes is None else _shapes(verdict.shapes)),
        ("Tolerance", ", ".join(f"{t.dtype} {t.rtol:g}{' (widened)' * t.widened_by_eager}" for t in given.tolerances)),
        ("Reference", given.reference_precision or ""),
        ("Parameters", {"state_dict": "by name", "order": "by shape and order"}.get(given.weights or "", "")),
        ("Timing", _timing(verdict)),
        ("Clocks", _clocks(verdict)),
        ("Floor", f"{kernel_time(floor.seconds)} by {floor.bound}" if (floor := verdict.floor) is not None else ""),
        ("Work", f"{work_shares(verdict.work)}; by {verdict.work.source}" if verdict.work is not None else ""),
        ("Whose work", verdict.ownership.label if verdict.ownership is not None else ""),
        ("Lowers precision", "; ".join(f"{one.flag} ({one.seen})" for one in verdict.precision)),
        ("By hkbench's rules", _by_ours(verdict)),
        ("Candidate", f"sha256 {given.candidate_sha256}" if given.candidate_sha256 else ""),
    ]
    return [(name, value) for name, value in rows if value]


def _by_ours(verdict: Verdict) -> str:
    """Return what hkbench's rules say of a verdict by others, nothing of one by themselves."""
    if verdict.conditions.rules is RuleSet.HKBENCH:
        return ""
    refused = ", ".join(f"{one.kind}{'' if one.rule is None else f' ({one.rule})'}" for one in verdict.would_fail)
    return f"refused: {refused}" if refused else "what was tried of them passes"


def _shapes(shapes: Shapes) -> str:
    """Return what became of the candidate at each shape, and how they were drawn."""
    each = [
        f"{one.described} ({one.kind}): "
        + (str(one.failure.kind) if one.failure else f"{one.speedup.value:.2f}x" if one.speedup else "right")
        for one in shapes.results
    ]
    return "; ".join([shapes.described, *each, f"seed {shapes.seed}", *shapes.not_checked])


def _timing(verdict: Verdict) -> str:
    if verdict.candidate is None or verdict.baseline is None:
        return ""
    runs = f"{len(verdict.candidate.samples)} runs of each side by {verdict.candidate.clock}"
    both = fmt.times(verdict.candidate.median.value, verdict.baseline.median.value)
    return f"{both}, medians of {runs}"


def _clocks(verdict: Verdict) -> str:
    if verdict.clocks is None:
        return ""
    return "agree" if verdict.clocks.agree else "do not agree: " + "; ".join(verdict.clocks.reasons)


def work_shares(work: Work) -> str:
    """Return where the time went: "own kernels 20.6 %, PyTorch's 0.0 %, libraries' 0.0 %, neither 79.4 %"."""
    shares = (("own kernels", work.own), ("PyTorch's", work.pytorch), ("libraries'", work.library))
    neither = ("copies, fills, interpreter and system", work.other)
    said = [f"{name} {fmt.percent(share)}" for name, share in (*shares, neither)]
    if work.unexplained:
        said.append(f"{fmt.percent(work.unexplained)} of the measured time unexplained")
    return ", ".join(said)


def _figure(figure: Figure) -> str:
    return fmt.percent(figure.value) if figure.unit == "fraction" else f"{figure.value:.3g} {figure.unit}"


def profile_rows(profile: KernelProfile) -> list[tuple[str, ...]]:
    """Return its longest kernels: name, whose, calls, time, share, and the profiler's figures."""
    return [
        (
            strip_escapes(kernel.name),
            kernel.owner,
            str(kernel.calls),
            kernel_time(kernel.seconds),
            fmt.percent(kernel.share),
            ", ".join(f"{name} {_figure(figure)}" for name, figure in kernel.figures.items()),
        )
        for kernel in profile.kernels[:KERNELS]
    ]
