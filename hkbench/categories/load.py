"""The categories file, read and checked as a whole before anything is spent."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from hkbench.categories.book import GENERIC, Advice, Category, CategoryBook, Match, StageGuide
from hkbench.categories.rules import Condition, Ridge, Rule
from hkbench.errors import ConfigurationError
from hkbench.records import Record


class _File(Record):
    """The file as it is written."""

    ridge: Ridge
    exit: tuple[Rule, ...] = ()  #: of every category
    categories: tuple[Category, ...]


#: The record that a table is, by the key that holds it.
_MODELS: dict[str, type[Record]] = {
    "categories": Category, "stages": StageGuide, "guidance": Advice, "match": Match, "graph": Condition,
    "when": Condition, "skip": Rule, "exit": Rule, "ridge": Ridge,
}  # fmt: skip


def load_categories(path: Path) -> CategoryBook:
    """Read the file; see docs/categories.md for its format.

    Raises ConfigurationError, naming file, key and what would be right, for anything that could fail later: TOML,
    unknown keys, values out of range, metrics that no profiler gives, a category twice, no generic one.
    """
    text = _read(path)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: not TOML: {error}; mend this place") from error
    try:
        _spell_out(data)
        # As JSON, in which lists are tuples and texts are names of an enum; nothing else is converted.
        found = _File.model_validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {_explain(error.errors()[0], data)}") from error
    _check(path, found.categories)
    return CategoryBook(
        ridge=found.ridge,
        categories=tuple(
            category.model_copy(update={"exit": (*category.exit, *found.exit)}) for category in found.categories
        ),
        sha256=hashlib.sha256(text.encode()).hexdigest(),
    )


def _spell_out(data: Mapping[str, object]) -> None:
    """Replace each text in a stage's guidance by a line for every backend and device."""
    for category in _tables(data.get("categories")):
        for stage in _tables(category.get("stages")):
            if isinstance(lines := stage.get("guidance"), list):
                stage["guidance"] = [{"text": line} if isinstance(line, str) else line for line in lines]


def _tables(found: object) -> list[dict[str, object]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _check(path: Path, categories: Sequence[Category]) -> None:
    """Check what concerns more than one key. Raises ConfigurationError."""
    names = [category.name for category in categories]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"{path}: the category {name!r} stands twice; rename or remove one")
    if GENERIC not in names:
        raise ConfigurationError(f"{path}: there is no category {GENERIC!r}, which takes what no other does; add it")
    for category in categories:
        where = f"{path}: categories[{category.name}]"
        matches = bool(category.match.graph or category.match.names)
        if matches is (category.name == GENERIC):
            right = "give match.graph or match.names" if category.name != GENERIC else "it takes the rest; remove match"
            raise ConfigurationError(f"{where}: {'some' if matches else 'no'} problem would match it; {right}")
        stages = [stage.name for stage in category.stages]
        if len(set(stages)) < len(stages):
            raise ConfigurationError(f"{where}: two stages are called {stages}; rename one")
        for rule in (*category.exit, *(rule for stage in category.stages for rule in stage.skip)):
            if rule.when.stage_name is not None and rule.when.stage_name not in stages:
                raise ConfigurationError(
                    f"{where}: a rule names the stage {rule.when.stage_name!r}; use one of {', '.join(stages)}"
                )


def _explain(error: ErrorDetails, data: object) -> str:
    """Return one validation error in words: the key, what is wrong, and what would be right."""
    where = _where(error["loc"], data)
    match error["type"]:
        case "extra_forbidden":
            parents = [part for part in error["loc"][:-1] if isinstance(part, str)]
            model = _MODELS[parents[-1]] if parents else _File
            return f"unknown key {where!r}; known here: {', '.join(model.model_fields)}"
        case "missing":
            return f"the key {where!r} is missing; add it"
        case _:
            return f"{where!r}: {error['msg']}; see docs/categories.md for the format"


def _where(location: tuple[int | str, ...], data: object) -> str:
    """Return the key, with what stands in a list called by its name, else by its number from 1."""
    text = ""
    for part in location:
        if part == "[key]":
            continue
        inside = _inside(data, part)
        if isinstance(part, int):
            named = inside.get("name") if isinstance(inside, dict) else None
            text += f"[{named if isinstance(named, str) else part + 1}]"
        else:
            text += f".{part}" if text else part
        data = inside
    return text or "the whole file"


def _inside(data: object, part: int | str) -> object:
    if isinstance(data, list) and isinstance(part, int):
        return data[part] if part < len(data) else None
    return data.get(part) if isinstance(data, dict) else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read ({error.strerror}); create it, or name another with --categories"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 text: {error}; save it as UTF-8") from error
