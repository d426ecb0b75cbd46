"""prompts/config.json and the templates it names, read and checked as a whole before anything is spent."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import jinja2
from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from hkbench.errors import ConfigurationError
from hkbench.prompts import hint_keys
from hkbench.prompts.environment import check_template, environment
from hkbench.records import Backend, FailureKind, QuestionKind, Record

CONFIG = "config.json"


def _hint_key(name: str) -> str:
    try:
        hint_keys.keys_of(name)
    except ValueError as error:
        raise PydanticCustomError("hint_key", "{says}", {"says": str(error)}) from None
    return name


#: By failure kind, or by "build_error.CLASS" with a class of error_classes; the file may use aliases (hint_keys).
Hints = Annotated[dict[Annotated[str, AfterValidator(_hint_key)], tuple[str, ...]], AfterValidator(hint_keys.canonical)]


class BackendRules(Record):
    """The same keys for one backend; what it gives comes before the top level's."""

    default_prompt: str | None = None
    patterns: dict[str, str] = Field(default_factory=dict)
    reflection_hints: Hints = Field(default_factory=dict)


class PromptConfig(Record):
    """prompts/config.json."""

    default_prompt: str
    #: regular expression on the problem's name, upper and lower case alike -> prompt file; the order in the file counts
    patterns: dict[str, str] = Field(default_factory=dict)
    reflection_hints: Hints = Field(default_factory=dict)
    backends: dict[Backend, BackendRules] = Field(default_factory=dict)
    judge: dict[QuestionKind, str] = Field(default_factory=dict)  #: what is asked for -> prompt file


@dataclass(frozen=True)
class PromptBook:
    """A checked prompts folder. Its texts were read once, so that `sha256` stays true while a run goes on."""

    folder: Path
    config: PromptConfig
    templates: dict[str, str]  #: file name -> text, partials included
    sha256: str

    @cached_property
    def environment(self) -> jinja2.Environment:
        """Where the book's templates are rendered; it keeps them compiled."""
        return environment(self.templates)

    @property
    def kernel_templates(self) -> list[str]:
        """Those that ask for a kernel: neither parts of others nor questions to a judge."""
        questions = self.config.judge.values()
        return sorted(name for name in self.templates if not name.startswith("_") and name not in questions)

    def choose(self, problem_name: str, backend: Backend) -> str:
        """The template for a problem: the first pattern that is found in its name (in any case), else the default."""
        own = self.config.backends.get(backend, BackendRules())
        for patterns in (own.patterns, self.config.patterns):
            for pattern, template in patterns.items():
                if re.search(pattern, problem_name, re.IGNORECASE):
                    return template
        return own.default_prompt or self.config.default_prompt

    def judge(self, kind: QuestionKind) -> str:
        """The template of a question to a judge. Raises ConfigurationError where the folder has none."""
        if kind not in self.config.judge:
            raise ConfigurationError(
                f"{self.folder / CONFIG}: judge.{kind} is missing: name the prompt file in which a judge is asked to "
                f"{kind} a kernel (docs/prompts.md)"
            )
        return self.config.judge[kind]

    def hints(self, kind: FailureKind, backend: Backend) -> list[str]:
        """The hints for a failure kind: the backend's own, then the general ones, none twice."""
        return self._hints(kind, backend)

    def class_hints(self, classes: Sequence[str], backend: Backend) -> list[str]:
        """The hints for classes of compiler errors, in their order, the backend's own first in each, none twice."""
        found = [hint for one in classes for hint in self._hints(f"{hint_keys.CLASSES_OF}.{one}", backend)]
        return list(dict.fromkeys(found))

    def _hints(self, key: str, backend: Backend) -> list[str]:
        own = self.config.backends.get(backend, BackendRules())
        general = self.config.reflection_hints.get(key, ())
        return list(dict.fromkeys(own.reflection_hints.get(key, ()) + general))


def load_prompts(folder: Path) -> PromptBook:
    """Reads `folder`/config.json and every template that it, or one of them, names.

    Raises ConfigurationError, naming file and key, for anything that could fail later: JSON, unknown or
    duplicate keys, regular expressions, missing files, templates that do not parse or use unknown variables.
    """
    path = folder / CONFIG
    text = _read(path, "create it, or name another folder with --prompts")
    config = _validated(path, _json(path, text))
    templates: dict[str, str] = {}
    for key, value in _named_templates(path, config):
        _collect(folder, f"{path}: {key}", value, templates)
    digest = hashlib.sha256(text.encode())
    for name in sorted(templates):
        body = templates[name].encode()
        digest.update(f"\0{name}\0{len(body)}\0".encode() + body)
    return PromptBook(folder, config, templates, digest.hexdigest())


def _json(path: Path, text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise ConfigurationError(f"{path}: the key {key!r} stands twice in one object; remove one")
            found[key] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise ConfigurationError(
            f"{path}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}; mend this place"
        ) from error


def _validated(path: Path, data: Any) -> PromptConfig:
    try:
        return PromptConfig.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {_explain(error.errors()[0])}") from error


def _explain(error: ErrorDetails) -> str:
    """One validation error in words: the key, what is wrong, and what would be right."""
    where = ".".join(str(part) for part in error["loc"] if part != "[key]") or "the whole file"
    match error["type"]:
        case "extra_forbidden":
            known = PromptConfig.model_fields if len(error["loc"]) == 1 else BackendRules.model_fields
            return f"unknown key {where!r}; known here: {', '.join(known)}"
        case "missing":
            return f"the key {where!r} is missing; add it"
        case "hint_key":
            return f"{where!r}: {error['msg']}"
        case "enum" if error["loc"][0] == "judge":
            return f"{where!r}: a judge is asked no such thing; use one of {', '.join(QuestionKind)}"
        case "enum":
            return f"{where!r}: no such backend; use one of {', '.join(Backend)}"
        case _:
            return f"{where!r}: {error['msg']}; see docs/prompts.md for the format"


def _named_templates(path: Path, config: PromptConfig) -> Iterator[tuple[str, str]]:
    """Every (key, template) of the file; checks the patterns on the way."""
    sections: list[tuple[str, PromptConfig | BackendRules]] = [("", config)]
    sections += [(f"backends.{backend}.", rules) for backend, rules in config.backends.items()]
    for prefix, rules in sections:
        if rules.default_prompt is not None:
            yield f"{prefix}default_prompt", rules.default_prompt
        for pattern, template in rules.patterns.items():
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigurationError(
                    f"{path}: {prefix}patterns: {pattern!r} is not a valid regular expression: {error}; fix it"
                ) from error
            yield f"{prefix}patterns[{pattern!r}]", template
    for kind, template in config.judge.items():
        yield f"judge.{kind}", template


def _collect(folder: Path, named_by: str, name: str, templates: dict[str, str]) -> None:
    """Reads template `name` and all it includes into `templates`."""
    if name in templates:
        return
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ConfigurationError(f"{named_by} leads out of {folder}: {name!r}; name a file inside the folder")
    text = _read(path, f"{named_by} names it: create it or change the name")
    templates[name] = text
    for other in check_template(path, text):
        _collect(folder, str(path), other, templates)


def _read(path: Path, next_step: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read ({error.strerror}); {next_step}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 text: {error}; save it as UTF-8") from error
