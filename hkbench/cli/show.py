"""hkbench show: a run, a problem, a sample."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from hkbench.cli.address import Address, find_address
from hkbench.cli.runs import newest_of
from hkbench.cli.verdicts import describe
from hkbench.errors import InputMissing, UsageError
from hkbench.records import EvaluationSettings, Outcome, SampleKey
from hkbench.report.build import detail, summary_of
from hkbench.report.format import compiled_of, pairs, share_of, wrapped
from hkbench.report.model import SampleReport
from hkbench.report.sample import build_lines, diff_lines, histogram, profile_lines, timing_lines
from hkbench.report.text import advice_lines, headline_lines, problem_table, sample_line
from hkbench.store.layout import RunPaths
from hkbench.store.reader import RunView, read_run
from hkbench.store.sample import WholeSample, read_sample
from hkbench.store.sanitize import strip_escapes

DESCRIPTION = """Show what a run folder holds: a table of the run, one problem, or everything of one sample.

PROBLEM is a number, a name or a part of one that no other problem has; 3/2/1 is problem 3, attempt 2, sample 1.
Works on running runs too, and only reads. Control characters in what a model wrote are left out."""

#: What is shown of a sample, in this order: a part's name and its lines.
PARTS: dict[str, Callable[[WholeSample, EvaluationSettings], list[str]]] = {
    "prompt": lambda sample, _: _whole(sample.prompt, "no prompt is recorded"),
    "reply": lambda sample, _: _whole(sample.reply, "no reply is recorded"),
    "code": lambda sample, _: _whole(sample.code, sample.note or "the reply holds no code"),
    "diff": lambda sample, _: diff_lines(sample),
    "build": lambda sample, _: build_lines(sample.verdict) if sample.verdict else [_OPEN],
    "verdict": lambda sample, _: describe(sample.verdict).splitlines() if sample.verdict else [_OPEN],
    "timing": lambda sample, _: timing_lines(sample.verdict) if sample.verdict else [_OPEN],
    "profile": lambda sample, settings: profile_lines(sample.verdict, settings) if sample.verdict else [_OPEN],
}
_OPEN = "no verdict yet"
_NAMED = {outcome: re.compile(rf"\s*\S+(?: \(weak\))?\s+{outcome.label}\b") for outcome in Outcome}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results",
        type=Path,
        nargs="?",
        metavar="RUN",
        help="the run's folder, or a folder of runs, whose newest is taken (default: results)",
    )
    parser.add_argument("address", nargs="?", metavar="PROBLEM[/ATTEMPT[/SAMPLE]]", help="what to show of it")
    parser.add_argument(
        "--part",
        action="append",
        choices=[*PARTS, "all"],
        help="of a sample: this part only, without a title where it is the only one; may be repeated (default: all)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Print what was asked for; 0 whatever the verdicts are."""
    folder, text = options.results, options.address
    if text is None and folder is not None and not folder.exists():
        folder, text = None, str(folder)  # `hkbench show 3/2/1`: of the newest run
    view = read_run(RunPaths(newest_of(folder)))
    address = None if text is None else _address(view, text, named=options.address is not None)
    if options.part and (address is None or address.key is None):
        raise UsageError(f"--part is of a sample: name one as PROBLEM/ATTEMPT/SAMPLE{_samples_of(address)}")
    console = Console(highlight=False, soft_wrap=True, emoji=False, markup=False)
    if address is None:
        _show_run(console, view, options.json)
    elif address.key is None:
        _show_problem(console, view, address, options.json)
    else:
        sample = read_sample(view.paths, address.key, view.state)
        chosen = list(PARTS) if not options.part or "all" in options.part else options.part
        _show_sample(console, sample, view.config.evaluation, chosen, options.json)
    return 0


def _address(view: RunView, text: str, *, named: bool) -> Address:
    """Return what `text` names in the run; `named`: the command names the run too. Errors as of `find_address`."""
    try:
        return find_address(view, text)
    except (InputMissing, UsageError) as error:
        if named:
            raise
        raise type(error)(f"{text} is not a folder; and taken as a part of {view.paths.root}: {error}") from None


def _samples_of(address: Address | None) -> str:
    if address is None:
        return ""
    names = [f"{one.key.attempt}/{one.key.sample}" for one in address.problem.samples]
    return f"; {address.problem.name} has {', '.join(names) or 'none yet'}"


def _show_run(console: Console, view: RunView, as_json: bool) -> None:
    report = detail(view)
    if as_json:
        _print_json(summary_of(report).model_dump(mode="json"))
        return
    config = report.config
    rows = [
        ("Run", str(view.paths.root)),
        *([("Replies", f"recorded, from {config.replay}")] if config.replay else []),
        ("Solved", share_of(report.overall.solved, report.overall.judged))
        if config.compiled_for is None
        else ("Compiled", f"{compiled_of(report)}; nothing was measured"),
    ]
    if not report.complete:
        rows.append(("Incomplete", report.incomplete_because or ""))
    _print(console, [report.title, *headline_lines(report)], "bold")
    _print(console, ["", *pairs(rows), "", *problem_table(report.problems)], _by_status)
    for damage in report.damage:
        _print(console, wrapped(f"damaged: {damage.file}: {damage.message}"))


def _show_problem(console: Console, view: RunView, address: Address, as_json: bool) -> None:
    problem = next(one for one in detail(view).problems if one.problem == address.problem.name)
    found = address.problem.parents
    wanted = [one for one in problem.samples if address.attempt in (None, one.attempt)]
    if as_json:
        data = problem.model_dump(mode="json", exclude={"samples"})
        _print_json(data | {"samples": [_sample_json(one, found) for one in wanted]})
        return
    _print(console, problem_table([problem]), _by_status)
    for attempt in problem.steps if address.attempt is None else [address.attempt]:
        parent = found.get(attempt)
        told = f", whose prompt shows sample {parent.attempt}/{parent.sample}" if parent is not None else ""
        _print(console, ["", f"attempt {attempt}{told}"], "bold")
        for line in [line for one in problem.advice if one.attempt == attempt for line in advice_lines(one)]:
            _print(console, wrapped(line, "  ", "      "))
        for one in [one for one in wanted if one.attempt == attempt]:
            where = f"  {one.attempt}/{one.sample}  "
            _print(console, wrapped(sample_line(one), where, " " * len(where)), _by_status)
        for decision in [one for one in problem.decisions if one.attempt == attempt]:
            _print(console, wrapped(f"{decision.what}: {decision.choice}, {decision.why}", "  ", "      "))
    if not wanted:
        _print(console, ["", "no sample yet"])


def _sample_json(sample: SampleReport, found: dict[int, SampleKey]) -> dict[str, Any]:
    source = found.get(sample.attempt)
    parent = None if source is None else {"attempt": source.attempt, "sample": source.sample}
    return sample.model_dump(mode="json") | {"parent": parent}


def _show_sample(
    console: Console, sample: WholeSample, settings: EvaluationSettings, chosen: list[str], as_json: bool
) -> None:
    if as_json:
        _print_json(_whole_json(sample, chosen))
        return
    key, parent = sample.key, sample.parent
    alone = len(chosen) == 1
    if not alone:
        _print(console, [f"{key.problem}, attempt {key.attempt}, sample {key.sample}"], "bold")
        _print(console, [f"damaged: {corrupt}" for corrupt in sample.corrupt])
        if parent is not None:
            _print(console, [f"prompt tells of sample {parent.attempt}/{parent.sample}"])
        if sample.rule is not None:
            _print(console, [f"code taken from the reply by rule {sample.rule}"])
    for name in chosen:
        if not alone:
            _print(console, ["", name, "-" * len(name)], "bold")
        _print(console, PARTS[name](sample, settings), _by_mark if name == "diff" else "")


def _whole_json(sample: WholeSample, chosen: list[str]) -> dict[str, Any]:
    verdict = sample.verdict
    parts: dict[str, Any] = {
        "prompt": sample.prompt,
        "reply": sample.reply,
        "code": sample.code,
        "diff": "\n".join(diff_lines(sample)) if sample.code is not None and sample.parent_code is not None else None,
        "build": "\n".join(build_lines(verdict)) if verdict is not None else None,
        "verdict": verdict.model_dump(mode="json") if verdict is not None else None,
        "timing": _timing_json(sample),
        "profile": verdict.profile.model_dump(mode="json") if verdict is not None and verdict.profile else None,
    }
    return {
        "key": sample.key.model_dump(),
        "parent": sample.parent.model_dump() if sample.parent is not None else None,
        "extraction": {"rule": sample.rule, "note": sample.note},
        "damage": list(sample.corrupt),
        **{name: parts[name] for name in PARTS if name in chosen},
    }


def _timing_json(sample: WholeSample) -> dict[str, Any] | None:
    verdict = sample.verdict
    if verdict is None or verdict.baseline is None or verdict.candidate is None:
        return None
    sides = {"baseline": verdict.baseline, "candidate": verdict.candidate}
    return {
        "speedup": verdict.speedup.model_dump() if verdict.speedup is not None else None,
        **{
            name: {
                "median": timing.median.model_dump(),
                "runs": len(timing.samples),
                "clock": timing.clock,
                "histogram": [vars(one) for one in histogram(timing.samples)],
            }
            for name, timing in sides.items()
        },
    }


def _whole(text: str | None, missing: str) -> list[str]:
    return [missing] if text is None else text.splitlines()


def _print_json(data: object) -> None:
    print(json.dumps(data, indent=2))


def _print(console: Console, lines: list[str], style: str | Callable[[str], str] = "") -> None:
    """Print lines without escapes; `style` is one for all, or gives each line's. Only a terminal shows colours."""
    for line in lines:
        console.print(Text(strip_escapes(line), style=style if isinstance(style, str) else style(line)))


def _by_mark(line: str) -> str:
    """Return the style of a diff's line."""
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def _by_status(line: str) -> str:
    """Return the style of a line that names an outcome after a name or the place of a sample."""
    return next((outcome.style for outcome in Outcome if _NAMED[outcome].match(line)), "")
