"""From a run folder to rows: what its journal, its verdicts and its kernels are worth to later runs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any

from pydantic import ValidationError

from hkbench.experience.facts import Traits
from hkbench.experience.fingerprint import fingerprint
from hkbench.experience.mending import mends, remedies
from hkbench.experience.rows import (
    LENGTH,
    ErrorRow,
    KernelRow,
    ProblemRow,
    Row,
    RunRow,
    RunRows,
    SampleRow,
    digest_of,
)
from hkbench.experience.told import Told, ToldProblem
from hkbench.records import (
    CONFIRM,
    Hint,
    HintKind,
    ReplyReceived,
    RunStarted,
    SampleKey,
    Stage,
    Status,
    Verdict,
    best_of,
    bottleneck_of,
    move_of,
)
from hkbench.store.costs import cost_of
from hkbench.store.events import read_history
from hkbench.store.layout import ProblemPaths, RunPaths
from hkbench.store.reader import RunFile, read_run_file
from hkbench.store.samples import ProblemState, SampleState
from hkbench.store.state import RunState

HINT = "hint"  #: what a strategy decides when it gives the next prompt a hint of its own


def extract(paths: RunPaths, traits: Mapping[str, Traits | None]) -> RunRows:
    """Return the rows of a run; `traits`: of its problems, by name, where they are known.

    A verdict that is missing or damaged is passed over: the run's own report says so.

    Raises:
        InputMissing: there is no run.
        ConfigurationError: its run.json cannot be read.
    """
    run = read_run_file(paths)
    history = read_history(paths.journal)
    state = RunState.after(history, run.config, run.facts.price, run.facts.judge_price)
    first = next((event.time for event in history if isinstance(event, RunStarted)), None)
    name = _identity(run, first)
    row = _run_row(name, paths, run, state)
    parts: list[Row] = []
    errors: dict[str, ErrorRow] = {}
    for problem in run.config.problems:
        told = _told(name, paths.problem(problem), problem, state.problems[problem])
        if not told.samples:
            continue
        parts.append(_problem_row(name, run, problem, traits.get(problem)))
        parts += [_sample_row(name, told, one, run, state.problems[problem]) for one in told.samples.values()]
        parts += [*mends(told), *remedies(told, run.config.backend), *_kernel(told)]
        for one in told.samples.values():
            if one.mark is not None and one.verdict.failure is not None:
                failure, mark = one.verdict.failure, one.mark
                found = ErrorRow(name, mark.digest, failure.kind, failure.stage, mark.symbol, mark.text)
                errors.setdefault(mark.digest, found)
    whole = (*parts, *errors.values())
    return RunRows(row._replace(digest=digest_of(row, whole)), whole)


def _identity(run: RunFile, first: float | None) -> str:
    """Return what all copies of a run share, and what stays as it grows: its beginning, and what it may not change."""
    config = run.config
    parts = (run.facts.started, run.facts.hardware.get("host"), first, config.strategy.name, config.model)
    return sha256("|".join(map(str, (*parts, config.backend, config.device))).encode()).hexdigest()[:LENGTH]


def _run_row(name: str, paths: RunPaths, run: RunFile, state: RunState) -> RunRow:
    config, facts, spent = run.config, run.facts, state.spending
    device = facts.device
    return RunRow(
        id=name,
        digest="",
        name=paths.root.resolve().name,
        started=facts.started,
        hkbench=facts.hkbench,
        strategy=config.strategy.name,
        model=config.model,
        judge_model=config.judge_model,
        backend=config.backend,
        device=str(config.device),
        device_name=device.name if device is not None else facts.hardware.get("device", ""),
        arch=config.compiled_for or (device.arch if device is not None else None),
        track=config.evaluation.track,
        rules=config.evaluation.rules,
        sizes=config.sizes,
        warm=int(config.experience is not None),
        calls=spent.calls,
        tokens=spent.tokens,
        cost=spent.cost if spent.calls else None,
        currency=spent.currency,
    )


def _problem_row(run: str, file: RunFile, name: str, known: Traits | None) -> ProblemRow:
    digest = dict(zip(file.config.problems, file.config.problem_hashes, strict=True))[name]
    if known is None:
        return ProblemRow(run, name, digest, None, "{}", None, None)
    return ProblemRow(run, name, digest, known.digest, json.dumps(known.classes), known.dtype, known.elements)


def _told(run: str, paths: ProblemPaths, name: str, state: ProblemState) -> ToldProblem:
    """Return the judged samples of a problem, with their codes and what their prompts showed."""
    samples: dict[SampleKey, Told] = {}
    for (attempt, number), one in sorted(state.samples.items()):
        key = SampleKey(problem=name, attempt=attempt, sample=number)
        folder = paths.sample(attempt, number)
        if one.verdict is None:
            continue
        with suppress(OSError, ValidationError):
            verdict = Verdict.model_validate_json(folder.result.read_bytes())
            code = folder.code.read_bytes().decode("utf-8", "replace") if folder.code.exists() else None
            mark = fingerprint(verdict.failure) if verdict.failure is not None else None
            samples[key] = Told(key, verdict, code, mark, state.parents.get(attempt))
    hints = {attempt: list(prompt.hints) for attempt, prompt in state.prompts.items()}
    for decided in state.decisions.values():
        if decided.what == HINT:
            hints.setdefault(decided.attempt, []).append(Hint(kind=HintKind.ADVICE, text=decided.why))
    return ToldProblem(run, name, samples, {attempt: tuple(found) for attempt, found in hints.items()})


def _sample_row(run: str, told: ToldProblem, one: Told, file: RunFile, state: ProblemState) -> SampleRow:
    verdict, place = one.verdict, (one.key.attempt, one.key.sample)
    known: SampleState = state.samples[place]
    reply: ReplyReceived | None = known.reply
    usage = reply.usage if reply is not None else None
    counted = usage is not None and usage.input is not None and usage.output is not None
    built = [stage.seconds for stage in verdict.stages if stage.stage is Stage.BUILD]
    above = told.samples.get(one.parent) if one.parent is not None else None
    gain = verdict.speedup
    step = state.steps.get(one.key.attempt)
    move = None if step is None else move_of(step)
    made: dict[str, Any] = {"move": None, "bottleneck": None, "log_gain": None, "gained": 0}
    if move not in (None, CONFIRM) and above is not None and above.verdict.speedup is not None:
        made = _gain(one, above, move)
    return SampleRow(
        run=run,
        problem=one.key.problem,
        attempt=one.key.attempt,
        sample=one.key.sample,
        model=reply.model if reply is not None else None,
        status=verdict.status,
        kind=verdict.failure.kind if verdict.failure is not None else None,
        stage=verdict.failure.stage if verdict.failure is not None else None,
        fingerprint=one.mark.digest if one.mark is not None else None,
        symbol=one.mark.symbol if one.mark is not None else None,
        speedup=gain.value if gain is not None else None,
        low=gain.low if gain is not None else None,
        high=gain.high if gain is not None else None,
        unsettled=int(verdict.unsettled),
        build_seconds=math.fsum(built) if built else None,
        seconds=math.fsum(stage.seconds for stage in verdict.stages),
        trials=len(verdict.trials),
        passed=sum(trial.passed for trial in verdict.trials),
        tokens=(usage.input or 0) + (usage.output or 0) if usage is not None and counted else None,
        cost=cost_of(usage, file.facts.price)
        if usage is not None and reply is not None and not reply.replayed
        else None,
        sha256=verdict.conditions.candidate_sha256,
        parent_attempt=one.parent.attempt if one.parent is not None else None,
        parent_sample=one.parent.sample if one.parent is not None else None,
        **made,
    )


def _gain(one: Told, above: Told, move: str) -> dict[str, Any]:
    """Return the columns of a move: what it was made to, its log gain, and whether that is beyond the intervals."""
    now, before = one.verdict.speedup, above.verdict.speedup
    assert before is not None, "it was made from a kernel that was timed"
    return {
        "move": move,
        "bottleneck": bottleneck_of(above.verdict),
        "log_gain": None if now is None else math.log(now.value / before.value),
        "gained": int(now is not None and now.is_above(before)),
    }


def _kernel(told: ToldProblem) -> Iterator[KernelRow]:
    best = best_of(one for one in told.samples.values() if one.code is not None and one.verdict.copy_of is None)
    if best is None or best.code is None or best.status is Status.COMPILED:
        return
    gain = best.verdict.speedup
    yield KernelRow(
        run=told.run,
        problem=told.name,
        attempt=best.key.attempt,
        sample=best.key.sample,
        sha256=sha256(best.code.encode()).hexdigest(),
        code=best.code,
        status=best.verdict.status,
        speedup=gain.value if gain is not None else None,
        low=gain.low if gain is not None else None,
        high=gain.high if gain is not None else None,
        unsettled=int(best.verdict.unsettled),
    )
