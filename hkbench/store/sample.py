"""Everything that a run folder holds of one sample: texts, the raw verdict, what its prompt was made from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from hkbench.records import ExtractionRule, SampleKey, Verdict
from hkbench.store.events import read_history
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run_file
from hkbench.store.samples import ProblemState
from hkbench.store.state import RunState


@dataclass(frozen=True)
class WholeSample:
    """One sample; a part that the folder does not hold is `None`. Texts are as they were written, escapes and all."""

    key: SampleKey
    parent: SampleKey | None  #: the sample that its prompt tells of; `None`: of none, or the journal does not say
    prompt: str | None  #: with the system message before it, where one was sent
    reply: str | None
    code: str | None
    parent_code: str | None
    rule: ExtractionRule | None  #: that found the code in the reply
    note: str | None  #: of the extraction
    verdict: Verdict | None
    corrupt: tuple[str, ...]  #: files that could not be read, and why


def read_sample(paths: RunPaths, key: SampleKey, state: RunState | None = None) -> WholeSample:
    """Return all parts of a sample. A corrupt file is named in `corrupt`, and its part is `None`.

    `state`: the run's, where it is known; `None`: the journal is read for it.
    """
    problem = paths.problem(key.problem)
    files = problem.sample(key.attempt, key.sample)
    corrupt: list[str] = []
    parent = parents(paths, key.problem, state).get(key.attempt)
    parent_code = None if parent is None else _text(problem.sample(parent.attempt, parent.sample).code)
    rule, note = _extraction(files.extraction, corrupt)
    prompt = _text(problem.prompt(key.attempt))
    return WholeSample(
        key=key,
        parent=parent,
        prompt=None if prompt is None else whole_prompt(_text(problem.system(key.attempt)), prompt),
        reply=_text(files.response),
        code=_text(files.code),
        parent_code=parent_code,
        rule=rule,
        note=note,
        verdict=_verdict(files.result, corrupt),
        corrupt=tuple(corrupt),
    )


def parents(paths: RunPaths, problem: str, state: RunState | None = None) -> dict[int, SampleKey]:
    """Return by attempt the sample that its prompt tells of; see `ProblemState`. `state`: as for `read_sample`."""
    if state is None:
        if not paths.run.is_file():
            return {}
        state = RunState.after(read_history(paths.journal), read_run_file(paths).config)
    return state.problems.get(problem, ProblemState()).parents


def whole_prompt(system: str | None, text: str) -> str:
    """Return all that was sent, for people to read: the user message, after the system message where there is one."""
    return text if system is None else f"[system message]\n{system}\n[user message]\n{text}"


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _extraction(path: Path, corrupt: list[str]) -> tuple[ExtractionRule | None, str | None]:
    text = _text(path)
    if text is None:
        return None, None
    try:
        found = json.loads(text)
        return ExtractionRule(found["rule"]), found.get("note")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        corrupt.append(f"{path.name}: not a recorded extraction: {error}")
        return None, None


def _verdict(path: Path, corrupt: list[str]) -> Verdict | None:
    text = _text(path)
    if text is None:
        return None
    try:
        return Verdict.model_validate_json(text)
    except ValidationError as error:
        corrupt.append(f"{path.name}: not a verdict: {error.errors(include_url=False, include_input=False)[0]['msg']}")
        return None
