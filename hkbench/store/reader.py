"""A read-only view of a run folder: what was asked, answered and judged, as far as it came.

Verdict files are the truth about verdicts; the journal tells the rest (usage, times, what the machine or the
service failed at, how the run ended). Raw timing samples are not kept.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hkbench.errors import ConfigurationError, InputMissing
from hkbench.records import (
    AdviceKey,
    AdviceRead,
    Answered,
    AnswerForm,
    BackendName,
    BaselineName,
    Bottleneck,
    Decided,
    Failure,
    FailureKind,
    Interval,
    Ownership,
    QuestionKind,
    Record,
    RegisterUse,
    Reply,
    Role,
    RunConfig,
    RunFacts,
    RunSources,
    SampleKey,
    Shapes,
    Sol,
    Stage,
    Standing,
    Status,
    Usage,
    Verdict,
    bottleneck_of,
)
from hkbench.store.collector import collector_paused
from hkbench.store.events import CorruptEntry, JournalTail, News, read_events
from hkbench.store.layout import AdvicePaths, RunPaths, SamplePaths
from hkbench.store.samples import ProblemState
from hkbench.store.state import RunState

__all__ = [
    "AdviceView", "CallView", "CorruptEntry", "JournalTail", "News", "ProblemView", "RunFile", "RunView", "SampleView",
    "read_events", "read_run", "read_run_file",
]  # fmt: skip

_ATTEMPT = re.compile(r"attempt_([1-9][0-9]*)")
_SAMPLE = re.compile(r"sample_([1-9][0-9]*)")
_ADVICE = re.compile(rf"({'|'.join(role for role in Role if role is not Role.CODER)})_([1-9][0-9]*)")


class RunFile(Record):
    """run.json: the settings, and where the run was made."""

    config: RunConfig
    facts: RunFacts
    sources: RunSources | None = None  #: `None`: an older run
    extended: float | None = None  #: when samples or attempts were added last, in seconds since the epoch


@dataclass(frozen=True, kw_only=True)
class _Call:
    """A call of a model. `None`: not known, or there is no answer yet."""

    model: str | None = None  #: that answered
    usage: Usage = field(default_factory=Usage)
    replayed: bool | None = None
    tries: int | None = None
    finish_reason: str | None = None
    generation_seconds: float | None = None

    @property
    def answered(self) -> bool:
        """Tell whether the reply arrived."""
        return self.replayed is not None


@dataclass(frozen=True, kw_only=True)
class SampleView(_Call, Standing):
    """One sample, with its verdict but without the raw timings. `None`: not known, or it did not come that far."""

    key: SampleKey
    evaluation_seconds: float | None
    status: Status | None = None
    failure: Failure | None = None
    speedup: Interval | None = None
    baseline: float | None = None  #: median time in seconds
    candidate: float | None = None
    language: BackendName | None = None  #: of the kernels
    own: float | None = None  #: `Work.own_share`; `None`: not traced
    would_fail: tuple[FailureKind, ...] = ()  #: what hkbench's rules refuse of it, where others were in force
    ownership: Ownership | None = None  #: whose work it was; an older record says it by the share of the work
    stages: Mapping[Stage, float] = field(default_factory=dict)  #: seconds of each that was reached; none of a copy
    warnings: tuple[str, ...] = ()
    code_sha256: str | None = None  #: of the candidate; `None`: there is none
    copy_of: SampleKey | None = None  #: the sample with the same code whose verdict this is
    over: Mapping[BaselineName, Interval] = field(default_factory=dict)  #: the speed-up over further baselines
    over_best: Interval | None = None  #: over the fastest baseline; `None`: eager alone was timed
    sol: Sol | None = None  #: how near it is to the least time of the device
    unsettled: bool = False  #: timed beside other work: the speed-up cannot be relied on
    findings: int = 0  #: in the compiler's figures of its kernels
    register_use: RegisterUse | None = None  #: of its kernels; `None`: the compiler said nothing of them
    bottleneck: Bottleneck | None = None  #: what its longest kernel waits for; `None`: nothing counted it
    shapes: Shapes | None = None  #: further ones; `None`: none was looked at

    @property
    def gain(self) -> tuple[float, float | None, float | None] | None:
        return (self.speedup.value, self.speedup.low, self.speedup.high) if self.speedup is not None else None


@dataclass(frozen=True, kw_only=True)
class AdviceView(_Call):
    """One answer of a model that reads a kernel. `None`: not known."""

    key: AdviceKey
    kind: QuestionKind | None
    about: SampleKey | None
    form: AnswerForm | None
    note: str | None
    said: dict[str, str] | None  #: also `None` where it cannot be used
    metrics: tuple[str, ...]  #: lines of the kernel's profile that it was shown


CallView = SampleView | AdviceView


@dataclass(frozen=True)
class ProblemView:
    """One problem of the plan with its samples by attempt, in order."""

    name: str
    attempts: tuple[tuple[SampleView, ...], ...]  #: attempt k is at k - 1; empty where none was begun
    advice: tuple[AdviceView, ...]  #: answers of the judge, by attempt and call
    decisions: tuple[Decided, ...]  #: of the strategy, in order
    parents: dict[int, SampleKey]  #: by attempt, the sample that its prompt tells of; see `ProblemState`
    metrics: dict[int, tuple[str, ...]]  #: by attempt, lines of a profile that its prompt shows, where they are chosen
    templates: dict[int, str]  #: by attempt, the file that its prompt was made from
    steps: dict[int, str]  #: by attempt, what it is, as the strategy described it; others are left out
    started: bool
    closed: bool
    error: str | None  #: a failure of the machine or the service that ended it
    seconds: float | None  #: while the run was alive, see `state.py`

    @property
    def samples(self) -> tuple[SampleView, ...]:
        return tuple(sample for attempt in self.attempts for sample in attempt)

    @property
    def calls(self) -> tuple[CallView, ...]:
        """Answered and under way: of the model, then of the judge."""
        return (*self.samples, *self.advice)


@dataclass(frozen=True)
class RunView:
    """A run folder as it stands."""

    paths: RunPaths
    config: RunConfig
    facts: RunFacts
    problems: tuple[ProblemView, ...]  #: in the order of the plan
    state: RunState
    corrupt: tuple[CorruptEntry, ...]


def read_run_file(paths: RunPaths) -> RunFile:
    """Read run.json. `InputMissing` when there is none, `ConfigurationError` when it cannot be read."""
    try:
        text = paths.run.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise InputMissing(
            f"{paths.root} holds no run (there is no {paths.run.name}): "
            "name the folder that a batch was given as --results"
        ) from None
    except OSError as error:
        raise InputMissing(f"{paths.run} cannot be read ({error.strerror}): name a run that can") from None
    try:
        return RunFile.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ConfigurationError(
            f"{paths.run}: {where}: {first['msg']}; restore the file, or run into another folder"
        ) from None


@collector_paused()
def read_run(paths: RunPaths) -> RunView:
    """Return the whole folder. Corrupt files and lines are listed in `corrupt`, and otherwise passed over."""
    run = read_run_file(paths)
    corrupt: list[CorruptEntry] = []
    state = RunState(run.config, run.facts.price, run.facts.judge_price)
    for item in read_events(paths.journal):
        if isinstance(item, CorruptEntry):
            corrupt.append(item)
        else:
            state.apply(item)
    planned = set(run.config.problems)
    corrupt.extend(
        CorruptEntry(paths.journal.name, None, f"names {name}, which is not in the plan")
        for name in state.problems
        if name not in planned
    )
    problems = tuple(_problem(paths, state, name, corrupt) for name in run.config.problems)
    return RunView(paths, run.config, run.facts, problems, state, tuple(corrupt))


def _problem(paths: RunPaths, state: RunState, name: str, corrupt: list[CorruptEntry]) -> ProblemView:
    found, replayed = state.problems[name], state.config.replay is not None
    keys = found.named | set(sample_folders(paths.problem(name).root))
    attempts = tuple(
        tuple(
            _sample(paths, found, SampleKey(problem=name, attempt=attempt, sample=sample), replayed, corrupt)
            for sample in sorted(sample for a, sample in keys if a == attempt)
        )
        for attempt in range(1, max((attempt for attempt, _ in keys), default=0) + 1)
    )
    return ProblemView(
        name=name,
        attempts=attempts,
        advice=tuple(
            view for key in _advice_keys(paths, name, found) if (view := _advice(paths, found, key, replayed, corrupt))
        ),
        decisions=tuple(found.decisions.values()),
        parents=found.parents,
        metrics={attempt: prompt.metrics for attempt, prompt in found.prompts.items()},
        templates={attempt: prompt.template for attempt, prompt in found.prompts.items()},
        steps=found.steps,
        started=found.started or bool(keys),
        closed=found.end is not None,
        error=found.error,
        seconds=found.seconds,
    )


def _advice_keys(paths: RunPaths, name: str, found: ProblemState) -> list[AdviceKey]:
    """Return the calls that journal or folder tell of, in the order in which they were made."""
    keys = {event.key for event in found.advice.values()} | set(advice_folders(paths.problem(name).root, name))
    return sorted(keys, key=lambda key: (key.attempt, key.role, key.call))


def sample_folders(root: Path) -> Iterator[tuple[int, int]]:
    """Yield (attempt, sample) of every sample's folder below a problem's."""
    for attempt, (number,) in _folders(root, _SAMPLE):
        yield attempt, int(number)


def advice_folders(root: Path, problem: str) -> Iterator[AdviceKey]:
    """Yield the call of every folder of one below a problem's."""
    for attempt, (role, call) in _folders(root, _ADVICE):
        yield AdviceKey(problem=problem, attempt=attempt, call=int(call), role=Role(role))


def _folders(root: Path, inner: re.Pattern[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    if not root.is_dir():
        return
    for attempt in root.iterdir():
        first = _ATTEMPT.fullmatch(attempt.name)
        if first is None or not attempt.is_dir():
            continue
        for folder in attempt.iterdir():
            second = inner.fullmatch(folder.name)
            if second is not None and folder.is_dir():
                yield int(first[1]), second.groups()


def _sample(
    paths: RunPaths, problem: ProblemState, key: SampleKey, replayed: bool, corrupt: list[CorruptEntry]
) -> SampleView:
    folder = paths.problem(key.problem).sample(key.attempt, key.sample)
    told = problem.samples.get((key.attempt, key.sample))
    verdict = _verdict(paths, folder, corrupt)
    if verdict is None and told is not None and told.verdict is not None and not folder.result.exists():
        name = str(folder.result.relative_to(paths.root))
        corrupt.append(CorruptEntry(name, None, "the journal tells of a verdict, but the file is missing"))
    reply: Reply | Answered | None = told.reply if told is not None else None
    if reply is None:
        reply = read_exchange(paths, folder, replayed, corrupt)
    return SampleView(
        key=key,
        evaluation_seconds=told.verdict.seconds if told is not None and told.verdict is not None else None,
        **_answer(reply),
        **_judgement(verdict),
    )


def _answer(reply: Reply | Answered | None) -> dict[str, Any]:
    """Return the fields of a call that its reply fills."""
    if reply is None:
        return {}
    return {
        "model": reply.model or None,
        "usage": reply.usage,
        "replayed": reply.replayed,
        "tries": reply.tries,
        "finish_reason": reply.finish_reason,
        "generation_seconds": reply.seconds,
    }


def _judgement(verdict: Verdict | None) -> dict[str, Any]:
    """Return the fields of a `SampleView` that a verdict fills."""
    if verdict is None:
        return {}
    own = verdict.work.own_share if verdict.work is not None else None
    return {
        "status": verdict.status,
        "failure": verdict.failure,
        "speedup": verdict.speedup,
        "baseline": verdict.baseline.median.value if verdict.baseline is not None else None,
        "candidate": verdict.candidate.median.value if verdict.candidate is not None else None,
        "language": verdict.language.backend if verdict.language is not None else None,
        "own": own,
        "ownership": Ownership.known(verdict.ownership, own),
        "would_fail": tuple(failure.kind for failure in verdict.would_fail),
        "stages": {stage.stage: stage.seconds for stage in verdict.stages},
        "warnings": verdict.conditions.warnings,
        "code_sha256": verdict.conditions.candidate_sha256,
        "copy_of": verdict.copy_of,
        "unsettled": verdict.unsettled,
        "over": {one.name: one.speedup for one in verdict.baselines if one.speedup is not None},
        "over_best": verdict.over_best,
        "sol": verdict.sol,
        "findings": verdict.compiler_findings,
        "register_use": RegisterUse.of(verdict.resources) if verdict.resources else None,
        "bottleneck": bottleneck_of(verdict),
        "shapes": verdict.shapes,
    }


def _advice(
    paths: RunPaths, problem: ProblemState, key: AdviceKey, replayed: bool, corrupt: list[CorruptEntry]
) -> AdviceView | None:
    """Return the advice; `None` while there is no answer."""
    folder = paths.problem(key.problem).advice(key.attempt, key.call, key.role)
    told = problem.advice.get(key)
    reply: Reply | Answered | None = told
    if reply is None:
        reply = read_exchange(paths, folder, replayed, corrupt)
    if reply is None:
        return None
    read = _advice_read(paths, folder, corrupt)
    known = told or read  # a crash can leave an answer without its event
    return AdviceView(
        key=key,
        kind=known.kind if known is not None else None,
        about=known.about if known is not None else None,
        form=known.form if known is not None else None,
        note=known.note if known is not None else None,
        said=read.said if read is not None else None,
        metrics=read.metrics if read is not None else (),
        **_answer(reply),
    )


def _advice_read(paths: RunPaths, folder: AdvicePaths, corrupt: list[CorruptEntry]) -> AdviceRead | None:
    try:
        return AdviceRead.model_validate_json(folder.advice.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        corrupt.append(
            CorruptEntry(str(folder.advice.relative_to(paths.root)), None, f"not read advice: {first['msg']}")
        )
        return None


def _verdict(paths: RunPaths, folder: SamplePaths, corrupt: list[CorruptEntry]) -> Verdict | None:
    name = str(folder.result.relative_to(paths.root))
    try:
        verdict = Verdict.model_validate_json(folder.result.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        corrupt.append(CorruptEntry(name, None, f"not a verdict: {first['msg']}"))
        return None
    if not _has_sound_figures(verdict):
        corrupt.append(CorruptEntry(name, None, "a time or the speed-up is not a positive finite number"))
        return None
    return verdict


def _has_sound_figures(verdict: Verdict) -> bool:
    timings = (verdict.baseline, verdict.candidate)
    figures = [verdict.speedup, *(timing.median for timing in timings if timing is not None)]
    return all(
        math.isfinite(x) and x > 0
        for figure in figures
        if figure is not None
        for x in (figure.value, figure.low, figure.high)
    )


def without_request(exchange: Any) -> dict[str, Any]:
    """Return the part of exchange.json that is a Reply. TypeError when it is not an object."""
    if not isinstance(exchange, dict):
        raise TypeError("not a JSON object")
    return {name: value for name, value in exchange.items() if name != "request"}


def read_exchange(
    paths: RunPaths, folder: SamplePaths | AdvicePaths, replayed: bool, corrupt: list[CorruptEntry]
) -> Reply | None:
    """Read exchange.json, for a reply stored just before a crash that never made it into the journal.

    The text is stored before the exchange, so a crash can leave it alone: answered, usage unknown.
    """
    text_only = Reply(text="", model="", replayed=replayed) if folder.response.exists() else None
    try:
        data = json.loads(folder.exchange.read_bytes())
        return Reply.model_validate(without_request(data) | {"text": ""})
    except (FileNotFoundError, NotADirectoryError):
        return text_only
    except (ValueError, TypeError) as error:  # not JSON, not a record, not an object
        name = str(folder.exchange.relative_to(paths.root))
        corrupt.append(CorruptEntry(name, None, f"not a recorded exchange: {str(error).splitlines()[0]}"))
        return text_only
