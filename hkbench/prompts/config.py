"""prompts/config.json and the templates it names, read and checked as a whole before anything is spent."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import jinja2
from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from hkbench.backends import Backend, shipped_backends
from hkbench.errors import ConfigurationError, InputMissing
from hkbench.prompts import hint_keys
from hkbench.prompts.environment import check_template, environment, is_template
from hkbench.records import BackendName, FailureKind, QuestionKind, Record, Role
from hkbench.registry import KnownBackend
from hkbench.shipped import shipped_folder

CONFIG = "config.json"
SHIPPED = shipped_folder("prompts")  #: the project's own folder
CARD = "_backend.txt"  #: includes stand for the card of the backend by this name
USER_MESSAGE = "_user.txt"  #: the template that follows a plain text, which is the system message


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
    system_prompt: str | None = None
    patterns: dict[str, str] = Field(default_factory=dict)
    reflection_hints: Hints = Field(default_factory=dict)


class PromptConfig(Record):
    """prompts/config.json."""

    default_prompt: str
    system_prompt: str | None = None  #: prompt file of the system message that goes before every prompt
    #: regular expression on the problem's name, upper and lower case alike -> prompt file; the order in the file counts
    patterns: dict[str, str] = Field(default_factory=dict)
    reflection_hints: Hints = Field(default_factory=dict)
    backends: dict[KnownBackend, BackendRules] = Field(default_factory=dict)
    judge: dict[QuestionKind, str] = Field(default_factory=dict)  #: what is asked for -> prompt file
    agents: dict[QuestionKind, str] = Field(default_factory=dict)  #: the same of strategy agents


@dataclass(frozen=True)
class PromptBook:
    """A checked prompts folder. Its texts were read once, so that `sha256` stays true while a run goes on."""

    folder: Path
    config: PromptConfig
    templates: dict[str, str]  #: file name -> text, partials included
    plain: dict[str, str]  #: file name -> text that is sent as it stands, as the system message
    sha256: str

    @cached_property
    def _environments(self) -> dict[str, jinja2.Environment]:
        return {}

    def environment(self, backend: Backend) -> jinja2.Environment:
        """Return where the book's templates are rendered for a backend; it keeps them compiled."""
        made = self._environments.get(backend.name)
        if made is None:
            templates = dict(backend.partials) | self.templates
            if backend.card in templates:
                templates.setdefault(CARD, templates[backend.card])
            made = self._environments[backend.name] = environment(templates)
        return made

    @property
    def kernel_templates(self) -> list[str]:
        """Those that ask for a kernel: neither parts of others nor questions to a judge."""
        questions = (*self.config.judge.values(), *self.config.agents.values())
        return sorted(name for name in self.templates if not name.startswith("_") and name not in questions)

    def choose(self, problem_name: str, backend: BackendName) -> str:
        """Return the template for a problem: the first whose pattern is in its name (any case), else the default."""
        own = self.config.backends.get(backend, BackendRules())
        for patterns in (own.patterns, self.config.patterns):
            for pattern, template in patterns.items():
                if re.search(pattern, problem_name, re.IGNORECASE):
                    return template
        return own.default_prompt or self.config.default_prompt

    def system_prompt(self, backend: BackendName) -> str | None:
        """Return the file of the system message that goes before every prompt for a kernel, if the folder names one."""
        own = self.config.backends.get(backend, BackendRules())
        return own.system_prompt or self.config.system_prompt

    def with_file(self, path: Path) -> PromptBook:
        """Return the same book with a prompt file of the user's, named `str(path)`, which may include the book's.

        Raises:
            InputMissing: there is no such file, or it is no UTF-8 text.
            ConfigurationError: the template does not parse, or names a variable or template that is not there.
        """
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise InputMissing(f"{path} cannot be read ({why}); name a UTF-8 text file with --prompt") from error
        if not is_template(path, text):
            return replace(self, plain=self.plain | {str(path): text})
        for name in check_template(path, text):
            if name not in self.templates and name != CARD:
                raise ConfigurationError(f"{path}: {self.folder} has no template {name!r}; correct the name")
        return replace(self, templates=self.templates | {str(path): text})

    def question(self, kind: QuestionKind) -> str:
        """Return the template of a question on a kernel. Raises ConfigurationError where the folder has none."""
        key, templates = ("judge", self.config.judge) if kind.role is Role.JUDGE else ("agents", self.config.agents)
        if kind not in templates:
            raise ConfigurationError(
                f"{self.folder / CONFIG}: {key}.{kind} is missing: name the prompt file in which the "
                f"{kind.role.replace('_', ' ')} is asked to {kind.replace('_', ' ')} (docs/prompts.md)"
            )
        return templates[kind]

    def hints(self, kind: FailureKind, backend: BackendName) -> list[str]:
        """Return the hints for a failure kind: the backend's own, then the general ones, none twice."""
        own = self.config.backends.get(backend, BackendRules())
        general = self.config.reflection_hints.get(kind, ())
        return list(dict.fromkeys(own.reflection_hints.get(kind, ()) + general))

    def class_hints(self, classes: Sequence[str], backend: BackendName) -> list[str]:
        """Return the hints for classes of compiler errors, in their order, none twice.

        A backend's own take the place of the general ones: how a mistake is fixed depends on how the code is built.
        """
        own = self.config.backends.get(backend, BackendRules()).reflection_hints
        keys = [f"{hint_keys.CLASSES_OF}.{one}" for one in classes]
        found = [hint for key in keys for hint in own.get(key) or self.config.reflection_hints.get(key, ())]
        return list(dict.fromkeys(found))


def load_prompts(folder: Path) -> PromptBook:
    """Read `folder`/config.json and every prompt file that it, or one of them, names.

    Raises ConfigurationError, naming file and key, for anything that could fail later: JSON, unknown or
    duplicate keys, regular expressions, missing files, templates that do not parse or use unknown variables.
    """
    path = folder / CONFIG
    text = _read(path, "create it, or name another folder with --prompts")
    config = _validated(path, _json(path, text))
    files = _Files(folder)
    files.add_template("the user message of a plain prompt", USER_MESSAGE)
    for key, value in _named_templates(path, config):
        if key.startswith(("judge.", "agents.")):
            files.add_template(f"{path}: {key}", value)
        else:
            files.add(f"{path}: {key}", value)
    digest = hashlib.sha256(text.encode())
    read = files.templates | files.plain
    for name in sorted(read):
        body = read[name].encode()
        digest.update(f"\0{name}\0{len(body)}\0".encode() + body)
    return PromptBook(folder, config, files.templates, files.plain, digest.hexdigest())


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
    """Return one validation error in words: the key, what is wrong, and what would be right."""
    where = ".".join(str(part) for part in error["loc"] if part != "[key]") or "the whole file"
    match error["type"]:
        case "extra_forbidden":
            known = PromptConfig.model_fields if len(error["loc"]) == 1 else BackendRules.model_fields
            return f"unknown key {where!r}; known here: {', '.join(known)}"
        case "missing":
            return f"the key {where!r} is missing; add it"
        case "hint_key":
            return f"{where!r}: {error['msg']}"
        case "enum" if error["loc"][0] in ("judge", "agents"):
            return f"{where!r}: nobody is asked to do such a thing; use one of {', '.join(QuestionKind)}"
        case "backend":
            return f"{where!r}: {error['msg']}"
        case _:
            return f"{where!r}: {error['msg']}; see docs/prompts.md for the format"


def _named_templates(path: Path, config: PromptConfig) -> Iterator[tuple[str, str]]:
    """Yield every (key, prompt file) of config.json; checks the patterns on the way."""
    sections: list[tuple[str, PromptConfig | BackendRules]] = [("", config)]
    sections += [(f"backends.{backend}.", rules) for backend, rules in config.backends.items()]
    for prefix, rules in sections:
        if rules.default_prompt is not None:
            yield f"{prefix}default_prompt", rules.default_prompt
        if rules.system_prompt is not None:
            yield f"{prefix}system_prompt", rules.system_prompt
        for pattern, template in rules.patterns.items():
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigurationError(
                    f"{path}: {prefix}patterns: {pattern!r} is not a valid regular expression: {error}; fix it"
                ) from error
            yield f"{prefix}patterns[{pattern!r}]", template
    for key, templates in (("judge", config.judge), ("agents", config.agents)):
        for kind, template in templates.items():
            yield f"{key}.{kind}", template


class _Files:
    """The prompt files of a folder, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.templates: dict[str, str] = {}
        self.plain: dict[str, str] = {}

    def add(self, named_by: str, name: str) -> None:
        """Read a prompt file: a template with all that it includes, or a plain text."""
        if name in self.templates or name in self.plain:
            return
        path, text = self._text(named_by, name)
        if is_template(path, text):
            self._keep(path, name, text)
        else:
            self.plain[name] = text

    def add_template(self, named_by: str, name: str) -> None:
        """Read a file that is a template whatever it looks like, with all that it includes."""
        if name not in self.templates:
            path, text = self._text(named_by, name)
            self._keep(path, name, text)

    def _keep(self, path: Path, name: str, text: str) -> None:
        self.templates[name] = text
        for other in check_template(path, text):
            names = [other]
            if other == CARD and not (self._folder / CARD).exists():
                names = [backend.card for backend in shipped_backends()]
            for named in names:
                self.add_template(str(path), named)

    def _text(self, named_by: str, name: str) -> tuple[Path, str]:
        path = self._folder / name
        if not path.resolve().is_relative_to(self._folder.resolve()):
            raise ConfigurationError(f"{named_by} leads out of {self._folder}: {name!r}; name a file inside the folder")
        if name.startswith("_") and not path.exists() and (SHIPPED / name).is_file():
            path = SHIPPED / name  # parts that a folder has no version of are the project's
        return path, _read(path, f"{named_by} names it: create it or change the name")


def _read(path: Path, next_step: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read ({error.strerror}); {next_step}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 text: {error}; save it as UTF-8") from error
