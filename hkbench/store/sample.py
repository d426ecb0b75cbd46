"""Everything that a run folder holds of one sample: texts, the raw verdict, what its prompt was made from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from hkbench.records import ExtractionRule, SampleKey, Verdict
from hkbench.store.events import read_history
from hkbench.store.fold import folded
from hkbench.store.layout import RunPaths


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
    damage: tuple[str, ...]  #: files that could not be read, and why


def read_sample(paths: RunPaths, key: SampleKey) -> WholeSample:
    """All parts of a sample. A damaged file is named in `damage`, and its part is `None`."""
    problem = paths.problem(key.problem)
    files = problem.sample(key.attempt, key.sample)
    damage: list[str] = []
    parent = parents(paths, key.problem).get(key.attempt)
    parent_code = None if parent is None else _text(problem.sample(parent.attempt, parent.sample).code)
    rule, note = _extraction(files.extraction, damage)
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
        verdict=_verdict(files.result, damage),
        damage=tuple(damage),
    )


def parents(paths: RunPaths, problem: str) -> dict[int, SampleKey]:
    """By attempt, the sample that its prompt tells of; see `fold.ProblemFold`."""
    return folded(read_history(paths.journal)).problem(problem).parents


def whole_prompt(system: str | None, text: str) -> str:
    """All that was sent, for people to read: the user message, after the system message where there is one."""
    return text if system is None else f"[system message]\n{system}\n[user message]\n{text}"


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _extraction(path: Path, damage: list[str]) -> tuple[ExtractionRule | None, str | None]:
    text = _text(path)
    if text is None:
        return None, None
    try:
        found = json.loads(text)
        return ExtractionRule(found["rule"]), found.get("note")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        damage.append(f"{path.name}: not a recorded extraction: {error}")
        return None, None


def _verdict(path: Path, damage: list[str]) -> Verdict | None:
    text = _text(path)
    if text is None:
        return None
    try:
        return Verdict.model_validate_json(text)
    except ValidationError as error:
        damage.append(f"{path.name}: not a verdict: {error.errors(include_url=False, include_input=False)[0]['msg']}")
        return None
