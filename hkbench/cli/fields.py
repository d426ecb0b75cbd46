"""Options of a command made of the fields of a pydantic model: a field is a flag, its docstring is the help."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from hkbench.cli.arguments import above_zero, not_negative, number, positive, whole
from hkbench.errors import UsageError
from hkbench.records import Flag

M = TypeVar("M", bound=BaseModel)


def flag_of(name: str, field: FieldInfo) -> Flag:
    """Return the flag of a field, with its name."""
    told = next((one for one in field.metadata if isinstance(one, Flag)), Flag())
    spelt = f"--{name.replace('_', '-')}" if told.name is None else told.name
    return Flag(told.metavar, spelt, told.unit)


def description(model: type[BaseModel], name: str) -> str:
    """Return the docstring of a field: that of the model, else of the model that it refines."""
    models = [one for one in model.__mro__ if isinstance(one, type) and issubclass(one, BaseModel)]
    found = (one.model_fields[name].description for one in models if name in one.model_fields)
    return next((text for text in found if text), "")


def with_default(text: str, default: object) -> str:
    """Complete the help of an option with its default, where that is a number or a word."""
    if isinstance(default, bool) or not isinstance(default, (int, float, str)):
        return text
    return f"{text} (default: {default:g})" if isinstance(default, float) else f"{text} (default: {default})"


def add_field(
    group: argparse._ActionsContainer, name: str, field: FieldInfo, text: str, default: object = None
) -> None:
    """Add the option of a field. `text`: its help; `default`: its value where the command line does not give it.

    The flag of a truth value gives the other one than the field's default; an enumeration has its values as choices;
    the flag of a mapping may be repeated, and its value is a list of texts.
    """
    flag = flag_of(name, field)
    assert flag.name is not None, "flag_of names it"
    kind, text = _kind(field), text.replace("%", "%%")
    if kind is bool:
        negated = field.default is True
        action, text = ("store_false", f"do not {text}") if negated else ("store_true", text)
        group.add_argument(flag.name, dest=name, action=action, default=default, help=text)
        return
    if get_origin(kind) is dict:
        group.add_argument(flag.name, dest=name, action="append", default=default, metavar=flag.metavar, help=text)
        return
    choices = _choices(kind)
    parse = None if choices is not None else _parser(kind, field, flag)
    metavar = None if choices else flag.metavar
    group.add_argument(
        flag.name, dest=name, type=parse or str, default=default, choices=choices, metavar=metavar, help=text
    )


def options_of(model: type[M], options: argparse.Namespace, **more: Any) -> M:
    """Make a model of the options that were given; `more` has values that they do not have.

    Raises:
        UsageError: the model refuses them.
    """
    given = {name: getattr(options, name, None) for name in model.model_fields}
    try:
        return model.model_validate({name: value for name, value in (given | more).items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        flags = [flag_of(str(part), model.model_fields[str(part)]).name for part in first["loc"][:1]]
        cause = first.get("ctx", {}).get("error", first["msg"])
        raise UsageError(": ".join(map(str, [*flags, cause]))) from None


def _kind(field: FieldInfo) -> Any:
    """Return the type of a field that may be `None` besides."""
    kind = field.annotation
    if get_origin(kind) in (Union, UnionType):
        kind = next(part for part in get_args(kind) if part is not NoneType)
    return kind


def _choices(kind: Any) -> list[str] | None:
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [one.value for one in kind] if isinstance(kind, type) and issubclass(kind, Enum) else None


def _parser(kind: Any, field: FieldInfo, flag: Flag) -> Callable[[str], object] | None:
    """Return the parser of a number or a path, by the bounds that the field has."""
    least = next((one.ge for one in field.metadata if hasattr(one, "ge")), None)
    if kind is int:
        return {0: not_negative, 1: positive}.get(least, whole) if least is not None else whole
    if kind is float:
        return above_zero(flag.unit) if flag.unit is not None else number
    return Path if kind is Path else None
