"""What a problem's screen shows of one sample: a rich renderable for each view, from the files of the run."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pygments.lexer import Lexer
from pygments.lexers.python import PythonLexer
from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from hkbench.monitor.files import SampleFiles, Unreadable
from hkbench.monitor.histogram import histogram
from hkbench.monitor.verdict import verdict_view
from hkbench.records import KernelProfile, KernelResources, SampleKey
from hkbench.store.figures import kernel_interval, kernel_time, speedup, speedup_interval
from hkbench.store.sample import whole_prompt
from hkbench.store.sanitize import one_line, strip_escapes
from hkbench.store.tokens import code_tokens

_HIGHLIGHTED = 60_000  # characters: beyond, colours take longer than a person waits
_DIFFED = 4_000  # lines of each side


@dataclass(frozen=True)
class Look:
    """What is looked at."""

    files: SampleFiles
    base: SampleKey | None = None  #: the sample that a diff begins with
    asked: bool = False  #: whether the prompt was made from `base`
    width: int = 80
    dark: bool = True  #: the terminal's background


def show(view: str, look: Look) -> RenderableType:
    """Return the view called `view`, one of `VIEWS`; what cannot be read is said in a line."""
    try:
        return VIEWS[view](look)
    except Unreadable as error:
        return Text(str(error), style="dim")


def _prompt(look: Look) -> RenderableType:
    files, attempt = look.files, look.files.key.attempt
    system = files.problem.system(attempt)
    sent = whole_prompt(files.text(system) if system.exists() else None, files.text(files.problem.prompt(attempt)))
    return _highlighted(sent, "markdown", look.dark)


class _CandidateLexer(PythonLexer):
    """Python with the C++ in its strings, as rich asks for it."""

    def get_tokens(self, text: str, unfiltered: bool = False) -> Iterator[tuple[Any, str]]:  # noqa: ARG002 - of pygments
        return code_tokens(text)


def _highlighted(text: str, language: str | Lexer, dark: bool, *, numbers: bool = False) -> RenderableType:
    if not text.strip():
        return Text("(empty)", style="dim")
    if len(text) > _HIGHLIGHTED:
        return Text(text)
    return Syntax(
        text,
        language,
        theme="ansi_dark" if dark else "ansi_light",
        background_color="default",
        line_numbers=numbers,
        word_wrap=True,
        tab_size=4,
    )


def _output(look: Look) -> RenderableType:
    """Return compiler output or traceback, the compiler's report of each kernel, what the candidate printed."""
    verdict = look.files.verdict()
    parts: list[RenderableType] = []
    if verdict.failure is not None:
        failure = verdict.failure
        parts += [Text(f"{failure.stage}: {failure.kind}", style="bold red"), _plain(failure.detail or failure.message)]
    parts += [_resources(resources) for resources in verdict.resources]
    if verdict.output:
        parts += [Text("printed by the candidate", style="bold"), _plain(verdict.output)]
    return (
        Group(*parts)
        if parts
        else Text("No compiler error or traceback, and the candidate printed nothing.", style="dim")
    )


def _plain(text: str) -> Text:
    return Text(strip_escapes(text).expandtabs(4).rstrip())


def _resources(found: KernelResources) -> Text:
    figures = found.model_dump(exclude={"name", "arch", "findings", "instructions", "is_function"}, exclude_none=True)
    told = ", ".join(f"{name} {value}" for name, value in figures.items() if value != ())
    notes = "".join(f"\n  {one_line(finding, 400)}" for finding in found.findings)
    return Text(f"{one_line(found.name, 120)} ({found.arch}): {told}{notes}")


def _timing(look: Look) -> RenderableType:
    """Return the timed runs of both sides."""
    verdict = look.files.verdict()
    sides = [("baseline", verdict.baseline, "cyan"), ("candidate", verdict.candidate, "green")]
    parts: list[RenderableType] = []
    if (found := verdict.speedup) is not None:
        parts.append(Text(f"speed-up {speedup_interval(found.value, found.low, found.high)}", style="bold"))
    for name, timing, style in sides:
        if timing is None:
            continue
        head = f"{name}: median {kernel_interval(timing.median)} of {len(timing.samples)} runs, {timing.clock}"
        parts += [Text(head, style="bold"), histogram(timing.samples, max(20, look.width - 4), style)]
    return Group(*parts) if parts else Text("Not timed (failed before timing).", style="dim")


def _profile(look: Look) -> RenderableType:
    """Return the kernels of one pass, longest first."""
    profile = look.files.verdict().profile
    if profile is None:
        return Text("No profile (only made for correct kernels that are slow).", style="dim")
    head = Text(f"{one_line(profile.source, 200)}: {kernel_time(profile.seconds)} a pass", style="bold")
    notes = [Text(f"- {one_line(text, 600)}") for text in (*profile.findings, *profile.notes)]
    return Group(head, _kernels(profile), *notes)


def _kernels(profile: KernelProfile) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("share", "time", "calls"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("owner", no_wrap=True)
    table.add_column("kernel", overflow="fold")
    for kernel in profile.kernels:
        share, time = f"{100 * kernel.share:.0f} %", kernel_time(kernel.seconds)
        table.add_row(share, time, str(kernel.calls), str(kernel.owner), Text(one_line(kernel.name, 300)))
    return table


def _diff(look: Look) -> RenderableType:
    """Return what changed from `base`'s code, and what that bought."""
    if look.base is None:
        return Text("No earlier attempt. Press m on another sample to compare with it.", style="dim")
    files, base = look.files, SampleFiles(look.files.paths, look.base)
    old, new = (side.text(side.folder.code).splitlines()[:_DIFFED] for side in (base, files))
    names = [f"{key.attempt}.{key.sample}" for key in (base.key, files.key)]
    head = Text.assemble((f"{names[0]} {_worth(base)} -> {names[1]} {_worth(files)}", "bold"))
    lines = list(difflib.unified_diff(old, new, names[0], names[1], lineterm=""))
    told = [Text(f"Feedback in this prompt: {text}", style="cyan") for text in (_told(base) if look.asked else ())]
    return Group(head, *told, *(Text(line, style=_diff_style(line)) for line in lines or ["The code is the same."]))


def _worth(side: SampleFiles) -> str:
    """Return the speed-up of a sample, or what it is instead."""
    try:
        verdict = side.verdict()
    except Unreadable:
        return "no verdict"
    if verdict.speedup is not None:
        return speedup(verdict.speedup.value)
    return str(verdict.failure.kind if verdict.failure is not None else verdict.status)


def _told(side: SampleFiles) -> list[str]:
    """Return what the next prompt says of a sample: its failure, or the findings of its profile."""
    try:
        verdict = side.verdict()
    except Unreadable:
        return []
    if verdict.failure is not None:
        return [one_line(f"{verdict.failure.kind}: {verdict.failure.message}", 300)]
    if verdict.profile is not None and verdict.profile.findings:
        return [one_line(finding, 300) for finding in verdict.profile.findings]
    if verdict.candidate is None or verdict.baseline is None:
        return []
    sides = (kernel_time(side.median.value) for side in (verdict.candidate, verdict.baseline))
    longest = verdict.profile.kernels[:1] if verdict.profile is not None else ()
    where = "".join(f"; {100 * kernel.share:.0f} % of the time in {one_line(kernel.name, 80)}" for kernel in longest)
    return [f"correct but slow, {' vs '.join(sides)} of the baseline{where}"]


def _diff_style(line: str) -> str:
    if line.startswith(("---", "+++")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


#: By name, in the order of their keys.
VIEWS: dict[str, Callable[[Look], RenderableType]] = {
    "verdict": lambda look: verdict_view(look.files),
    "code": lambda look: _highlighted(
        look.files.text(look.files.folder.code), _CandidateLexer(), look.dark, numbers=True
    ),
    "diff": _diff,
    "output": _output,
    "timing": _timing,
    "profile": _profile,
    "reply": lambda look: _highlighted(look.files.text(look.files.folder.response), "markdown", look.dark),
    "prompt": _prompt,
}


def file_of(view: str, files: SampleFiles) -> Path:
    """Return the file that a view shows, or the first of several."""
    match view:
        case "code" | "diff":
            return files.folder.code
        case "reply":
            return files.folder.response
        case "prompt":
            return files.problem.prompt(files.key.attempt)
        case _:
            return files.folder.result
