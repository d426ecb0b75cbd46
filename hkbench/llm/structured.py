"""Answers that are to be JSON of a form: asked for, and read from what models write instead."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import json_repair
from pydantic import ValidationError

from hkbench.records import Advice, AnswerForm

_BLOCK = re.compile(r"```[ \t]*(?:json5?|JSON)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_LIMIT = 100_000  #: characters of an answer that are looked at, from its end
_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)


@dataclass(frozen=True)
class ReadAnswer:
    """What an answer said. `advice` is `None` for an unusable one; `note` says what was wrong with it."""

    advice: Advice | None
    form: AnswerForm
    note: str | None


def schema_of(form: type[Advice]) -> dict[str, object]:
    """Return the JSON Schema of a form for structured output: every field a string, and required."""
    return {
        "type": "object",
        "properties": {
            name: {"type": "string", "description": field.description or name}
            for name, field in form.model_fields.items()
        },
        "required": list(form.model_fields),
        "additionalProperties": False,
    }


def shape_of(form: type[Advice]) -> str:
    """Return the form as a prompt shows it: an object with what belongs into each field."""
    return json.dumps({name: f"<{field.description}>" for name, field in form.model_fields.items()}, indent=2)


def read_answer(text: str, form: type[Advice]) -> ReadAnswer:
    """Read the object of `form` out of an answer.

    The whole text, its code blocks, and from its first brace on; as JSON, then with the faults mended that models
    make (quotes, commas, comments, a cut end). Names of fields count whatever their case, with spaces or hyphens. Of
    several objects that fit, the last.
    """
    places = list(_places(text))
    if not places:
        return ReadAnswer(None, AnswerForm.UNUSABLE, "it holds no JSON object")
    why = ""
    for how, load in ((AnswerForm.JSON, _strictly), (AnswerForm.MENDED, _tolerantly)):
        for place in places:
            for found in load(place):
                try:
                    advice = form.model_validate(_named(found))
                except ValidationError as error:
                    why = why or _because(error)
                    continue
                return ReadAnswer(advice, how, None if how is AnswerForm.JSON else "its JSON was mended")
    return ReadAnswer(None, AnswerForm.UNUSABLE, why or "its JSON cannot be read")


def _places(text: str) -> Iterator[str]:
    """Yield where the object may stand, the most likely place first."""
    text = _THOUGHT.sub("", text[-_LIMIT:])
    if "{" not in text:
        return
    yield text.strip()
    yield from reversed([block.strip() for block in _BLOCK.findall(text) if "{" in block])
    yield text[text.index("{") :]


def _strictly(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of the text, the last one first."""
    decoder, at = json.JSONDecoder(), text.find("{")
    found: list[dict[str, Any]] = []
    value: Any
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError):
            end = at + 1
        else:
            found.append(value)
        at = text.find("{", end)
    return iter(reversed(found))


def _tolerantly(text: str) -> Iterator[dict[str, Any]]:
    try:
        value: Any = json_repair.loads(text)
    except ValueError:  # nested too deeply
        return iter(())
    values: list[Any] = value if isinstance(value, list) else [value]
    return (one for one in reversed(values) if isinstance(one, dict))


def _named(found: dict[str, Any]) -> dict[str, Any]:
    """Return field names as the form has them. A list of steps is as good as a text of them."""
    named: dict[str, Any] = {}
    for name, value in found.items():
        steps = isinstance(value, list) and value and all(isinstance(one, str) for one in value)
        named[re.sub(r"[\s-]+", "_", str(name).strip().lower())] = "\n".join(value) if steps else value
    return named


def _because(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}"
