"""A verdict on one screen: what it is, why, and how it was reached."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hkbench.monitor.files import SampleFiles, Unreadable
from hkbench.monitor.format import duration
from hkbench.records import ExtractionRule, Failure, Mismatch, Ownership, Severity, StageTime, Verdict, outcome_of
from hkbench.store.figures import kernel_interval, kernel_time, speedup_interval
from hkbench.store.sanitize import one_line, strip_escapes

_BAR = 30  # columns of the longest stage
_RULES: dict[str, str] = {
    ExtractionRule.ONLY_BLOCK: "the only code block",
    ExtractionRule.LAST_MODEL_NEW: "the last code block with ModelNew",
    ExtractionRule.BARE_SOURCE: "the whole reply, which is Python",
    ExtractionRule.UNCLOSED_BLOCK: "a code block that was never closed",
    ExtractionRule.APPLIED_DIFF: "a diff, applied to the code before",
    ExtractionRule.MAX_BLOCK: "the longest code block",
    ExtractionRule.BOUND: "a bare kernel, which hkbench launches",
    ExtractionRule.PROPOSED: "no reply, the strategy made it",
    ExtractionRule.NONE: "nothing, no code was found",
}


def verdict_view(files: SampleFiles) -> RenderableType:
    """Return the verdict, the call that led to it and its conditions. `Unreadable` where there is neither."""
    try:
        verdict = files.verdict()
    except Unreadable as error:
        if not files.folder.response.exists():
            raise
        return Group(Text(str(error), style="dim"), _rows(_call(files)))
    parts: list[RenderableType] = [_rows([*_result(verdict), *_call(files)])]
    if verdict.stages:
        parts.append(_stages(verdict.stages))
    notes = [*_notes(verdict)]
    if notes:
        parts.append(Group(*(Text(f"- {one_line(note, 600)}") for note in notes)))
    return Group(*parts)


def _rows(rows: list[tuple[str, Text]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    return table


def _result(verdict: Verdict) -> Iterator[tuple[str, Text]]:
    found = verdict.speedup
    gain = (found.value, found.low, found.high) if found is not None else (None, None, None)
    outcome = outcome_of(verdict.status, *gain, unsettled=verdict.unsettled)
    status = str(verdict.status) if verdict.status == outcome.label else f"{outcome.label} ({verdict.status})"
    yield "result", Text(status, style=outcome.style)
    if verdict.copy_of is not None:
        yield "", Text(f"same code as {verdict.copy_of.attempt}.{verdict.copy_of.sample}, whose verdict this is")
    if found is not None:
        yield "speed-up", Text(speedup_interval(found.value, found.low, found.high))
    for name, timing in (("baseline", verdict.baseline), ("candidate", verdict.candidate)):
        if timing is not None:
            yield name, Text(f"{kernel_interval(timing.median)}, {len(timing.samples)} runs")
    if verdict.failure is not None:
        yield from _failure(verdict.failure)
    if verdict.trials:
        passed = sum(trial.passed for trial in verdict.trials)
        kinds = ", ".join(dict.fromkeys(trial.drawn for trial in verdict.trials))
        yield "trials", Text(f"{passed} of {len(verdict.trials)} passed ({one_line(kinds, 200)})")
    if verdict.shapes is not None:
        yield "shapes", Text(one_line(verdict.shapes.described, 400))


def _failure(failure: Failure) -> Iterator[tuple[str, Text]]:
    line = f", line {failure.line}" if failure.line is not None else ""
    rule = f" (rule {failure.rule})" if failure.rule is not None else ""
    signal = f", {one_line(failure.signal, 40)}" if failure.signal else ""
    trial = f", trial {failure.trial}" if failure.trial is not None else ""
    yield "failure", Text(f"{failure.kind} in stage {failure.stage}{rule}{line}{signal}{trial}", style="red")
    yield "message", Text(strip_escapes(failure.message).expandtabs(4).strip())
    if failure.change is not None:
        yield "change", Text(failure.change)
    if failure.mismatch is not None:
        yield "mismatch", Text(_mismatch(failure.mismatch))


def _mismatch(found: Mismatch) -> str:
    where = f"{one_line(found.output, 80)}[{', '.join(map(str, found.index))}]"
    errors = [
        f"{name} error {value:.3g}"
        for name, value in (("absolute", found.max_abs_error), ("relative", found.max_rel_error))
        if value is not None
    ]
    share = f"{found.wrong_elements} of {found.elements} elements wrong"
    return ", ".join([f"{where}: expected {found.expected!r}, got {found.got!r}", *errors, share])


def _call(files: SampleFiles) -> list[tuple[str, Text]]:
    """Return the model call and how the code was found, as far as they are stored."""
    rows = []
    try:
        call = files.fields(files.folder.exchange)
        usage = call.get("usage")
        tokens = {name: value for name, value in usage.items() if value is not None} if isinstance(usage, dict) else {}
        parts = [str(call.get("model")), *(f"{value} {name} tokens" for name, value in tokens.items())]
        seconds = call.get("seconds")
        if isinstance(seconds, float | int):
            parts.append(duration(seconds))
        parts += ["replayed"] if call.get("replayed") else []
        parts += [f"finish reason: {call['finish_reason']}"] if call.get("finish_reason") else []
        rows.append(("reply", Text(one_line(", ".join(parts), 400))))
    except Unreadable:
        pass  # an older run, or one without --record: the reply itself has its own view
    try:
        found = files.fields(files.folder.extraction)
        note = f": {found['note']}" if found.get("note") else ""
        rule = str(found.get("rule"))
        where = f"taken from: {_RULES[rule]}" if rule in _RULES else f"taken by rule {rule}"
        rows.append(("code", Text(one_line(f"{where}{note}", 400))))
    except Unreadable:
        pass
    return rows


def _stages(stages: tuple[StageTime, ...]) -> Table:
    longest = max((stage.seconds for stage in stages if math.isfinite(stage.seconds)), default=0.0) or 1.0
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for stage in stages:
        bar = "━" * round(_BAR * max(0.0, stage.seconds) / longest) if math.isfinite(stage.seconds) else ""
        table.add_row(str(stage.stage), kernel_time(stage.seconds), Text(bar, style="blue"))
    return table


def _notes(verdict: Verdict) -> Iterator[str]:
    if verdict.work is not None:
        work = verdict.work
        shares = {"own": work.own, "PyTorch": work.pytorch, "library": work.library, "other": work.other}
        told = ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items() if share is not None)
        yield f"work: {told} ({work.source})"
    if verdict.ownership is Ownership.NOT_ESTABLISHED:
        yield "whose work it was: not established"
    if verdict.floor is not None:
        yield f"floor: at least {kernel_time(verdict.floor.seconds)} by {verdict.floor.bound}"
    if verdict.clocks is not None:
        yield from (f"clocks: {reason}" for reason in verdict.clocks.reasons)
    for finding in verdict.findings:
        if finding.severity is not Severity.ADVICE:
            yield f"{finding.severity}: {finding.rule}, line {finding.line}: {finding.text}"
    yield from (f"warning: {text}" for text in verdict.conditions.warnings)
    yield from (f"not checked: {text}" for text in verdict.conditions.not_checked)
