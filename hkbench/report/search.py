"""What a search leaves beside the verdicts: trace.md and candidate.diff of each problem, what moves brought in all."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from hkbench.records import (
    CONFIRM,
    Bottleneck,
    Extraction,
    ExtractionRule,
    Layout,
    MoveGain,
    MoveGains,
    SampleKey,
    best_of,
    move_of,
    speedup_of,
)
from hkbench.report import aggregate
from hkbench.store.figures import speedup
from hkbench.store.files import write_atomic
from hkbench.store.layout import ProblemPaths
from hkbench.store.reader import ProblemView, RunView, SampleView
from hkbench.store.sanitize import one_line
from hkbench.store.tree import way_to

_CELL = 240  #: characters of a cell of trace.md

_At = tuple[str, Bottleneck | None]  #: a move, and what the kernels that it was made from wait for


def write_search(run: RunView) -> None:
    """Write the files of a run whose strategy searches a tree; `OSError` passes."""
    if run.config.strategy.layout is not Layout.TREE:
        return
    for problem in run.problems:
        if _with_verdicts(problem):
            paths = run.paths.problem(problem.name)
            write_atomic(paths.trace, trace(problem, {one.key: _written(paths, one) for one in problem.samples}))
            _write_diffs(run, problem)
    write_atomic(run.paths.moves, move_gains(run).model_dump_json(indent=2) + "\n")


def trace(problem: ProblemView, written: Mapping[SampleKey, str] = MappingProxyType({})) -> str:
    """Return the story of a problem's search, in Markdown. `written`: by which rule the code was found."""
    judged = _with_verdicts(problem)
    lines = [f"# {problem.name}", ""]
    best = best_of(judged)
    if best is not None:
        way = way_to_best(problem)
        results = {sample.key.attempt: _result(sample) for sample in reversed(judged)}  # of its first sample
        lines += [f"The best kernel is that of attempt {best.key.attempt}, {_result(best)}. It came about so:", ""]
        lines += [
            f"{number}. {_step(problem, attempt)}: {results.get(attempt, 'not judged')}{_brought(problem, attempt)}"
            for number, attempt in enumerate(way, 1)
        ]
        lines.append("")
    lines += ["| attempt | from | move | code | came to | best so far |", "| ---: | ---: | --- | --- | --- | --- |"]
    for number, sample in enumerate(judged, 1):
        parent = problem.parents.get(sample.key.attempt)
        so_far = speedup_of(best_of(judged[:number]))
        told = "" if so_far is None else speedup(so_far)
        lines.append(
            f"| {sample.key.attempt} | {'' if parent is None else parent.attempt} | "
            f"{_cell(_step(problem, sample.key.attempt))} | {_cell(written.get(sample.key, ''))} | "
            f"{_result(sample)} | {told} |"
        )
    decided = [f"- attempt {one.attempt}: {one.what}: {one.choice}; {one.why}" for one in problem.decisions]
    return "\n".join([*lines, "", *decided]).rstrip() + "\n"


def move_gains(run: RunView) -> MoveGains:
    """Return what each move came to over all problems of a run, apart for what the kernels wait for."""
    steps: dict[_At, list[tuple[SampleView, SampleView]]] = {}
    paths: dict[str, tuple[str, ...]] = {}
    for problem in run.problems:
        judged = {sample.key: sample for sample in _with_verdicts(problem)}
        for sample in judged.values():
            parent = problem.parents.get(sample.key.attempt)
            above = judged.get(parent) if parent is not None else None
            name = move_of(_step(problem, sample.key.attempt))
            if above is not None and above.speedup is not None and name != CONFIRM:
                at = name, above.bottleneck
                steps.setdefault(at, []).append((sample, above))
        if way := way_to_best(problem):
            paths[problem.name] = tuple(move_of(_step(problem, attempt)) for attempt in way[1:])
    ordered = sorted(steps.items(), key=lambda one: (one[0][0], one[0][1] or ""))
    return MoveGains(moves=tuple(_gain(*at, found) for at, found in ordered), paths=paths)


def _gain(move: str, waits_for: Bottleneck | None, steps: Sequence[tuple[SampleView, SampleView]]) -> MoveGain:
    good = [
        (math.log(now.speedup.value / above.speedup.value), now.speedup.is_above(above.speedup))
        for now, above in steps
        if now.speedup is not None and above.speedup is not None
    ]
    return MoveGain(
        move=move,
        bottleneck=waits_for,
        tried=len(steps),
        failed=len(steps) - len(good),
        gained=sum(faster for _, faster in good),
        log_gain=max(0.0, math.fsum(gain for gain, faster in good if faster)),
        mean_gain=math.exp(math.fsum(gain for gain, _ in good) / len(good)) if good else None,
    )


def _write_diffs(run: RunView, problem: ProblemView) -> None:
    """Write candidate.diff beside each kernel that was made from another one."""
    paths = run.paths.problem(problem.name)
    for sample in problem.samples:
        parent = problem.parents.get(sample.key.attempt)
        if parent is None:
            continue
        before = paths.sample(parent.attempt, parent.sample).code
        after = paths.sample(sample.key.attempt, sample.key.sample)
        if before.exists() and after.code.exists():
            old, new = (path.read_text(encoding="utf-8").splitlines(keepends=True) for path in (before, after.code))
            names = (f"{parent.attempt}.{parent.sample}", f"{sample.key.attempt}.{sample.key.sample}")
            write_atomic(after.diff, "".join(difflib.unified_diff(old, new, *names)))


def _with_verdicts(problem: ProblemView) -> list[SampleView]:
    return [sample for sample in problem.samples if sample.status is not None]


def way_to_best(problem: ProblemView) -> list[int]:
    """Return the attempts from the start to that of the best sample; empty where none is correct."""
    best = best_of(problem.samples)
    parents = {attempt: parent.attempt for attempt, parent in problem.parents.items()}
    return way_to(best.key.attempt, parents) if best is not None else []


def gain_of(problem: ProblemView, attempt: int) -> float | None:
    """Return how many times as fast an attempt's best sample is as the one that it was made from, by the estimates."""
    parent = problem.parents.get(attempt)
    before = speedup_of(next((one for one in problem.samples if one.key == parent), None))
    now = speedup_of(best_of(one for one in problem.samples if one.key.attempt == attempt))
    return now / before if now is not None and before else None


def _written(paths: ProblemPaths, sample: SampleView) -> str:
    """Say how a sample's code was found in the reply; the strategy's own is `proposed`, and its move says by what."""
    try:
        text = paths.sample(sample.key.attempt, sample.key.sample).extraction.read_bytes()
        found = Extraction.model_validate({"source": None, **json.loads(text)})
    except (OSError, ValueError, TypeError):
        return ""
    noted = found.note is not None and found.rule is not ExtractionRule.PROPOSED
    return f"{found.rule}: {found.note}" if noted else str(found.rule)


def _cell(text: str) -> str:
    return one_line(text, _CELL).replace("|", "/")


def _step(problem: ProblemView, attempt: int) -> str:
    return aggregate.step_of(problem, attempt) or "start"


def _brought(problem: ProblemView, attempt: int) -> str:
    gain, parent = gain_of(problem, attempt), problem.parents.get(attempt)
    return "" if gain is None or parent is None else f", {speedup(gain)} over attempt {parent.attempt}"


def _result(sample: SampleView) -> str:
    if sample.speedup is not None:
        found = sample.speedup
        interval = "" if found.low is None or found.high is None else f" [{found.low:.2f}, {found.high:.2f}]"
        return f"{speedup(found.value)}{interval}"
    if sample.failure is not None:
        return f"{sample.failure.kind}"
    return str(sample.status) if sample.register_use is None else f"{sample.status}: {sample.register_use}"
