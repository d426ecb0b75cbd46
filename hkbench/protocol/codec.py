"""Messages as frozen dataclasses: written as JSON objects, and read back strictly.

Types are checked exactly: a bool is no int, an int no float, and a float is finite. A field that the class lacks is
refused, and so is the lack of a field that has no default. A field whose name is a word of Python's ends with an
underscore, which its key has not. A record (hkbench/records) reads and writes itself, and so does a text of a class of
its own, such as a member of a `StrEnum`.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal, Protocol, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from hkbench.protocol.wire import WireError

T = TypeVar("T")

#: Reads a value that lies at a path (`AnswerOfConstruct.state[0].shape`), which errors name.
Reader = Callable[[object, str], object]
Writer = Callable[[object], object]

_PLAIN = (bool, int, float, str, types.NoneType)


class _Record(Protocol):
    """A pydantic model, as this room knows one: it imports none."""

    @classmethod
    def model_validate(cls, obj: object, /) -> object: ...
    def model_dump(self, *, mode: str) -> dict[str, object]: ...


class NotOfForm(WireError):
    """A message is not of its class; the text says where and what was expected there."""


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds, both included: of a number, or of the length of a text, list or dict. Goes into `Annotated`."""

    least: float
    most: float


def decode(kind: type[T], message: Mapping[str, object]) -> T:
    """Return the message of a class that a JSON object holds.

    Raises:
        NotOfForm: it is of another form.
    """
    return cast("T", _reader(cast("Hashable", kind))(message, kind.__name__))


def encode(message: object) -> dict[str, object]:
    """Return a message as a JSON object. What stands in fields of type `object` or in dicts is taken as it is."""
    write = _writer(cast("Hashable", type(message)))
    assert write is not None, f"{type(message).__name__} is no message"
    return cast("dict[str, object]", write(message))


def class_of_answer(request: object) -> type[object]:
    """Return the class of a request's answers: what its generic base was given."""
    return _class_of_answer(cast("Hashable", type(request)))


@cache
def _class_of_answer(kind: object) -> type[object]:
    (base,) = vars(kind)["__orig_bases__"]
    (found,) = get_args(base)
    return cast("type[object]", found)


@cache
def _reader(hint: object) -> Reader:
    """Return what reads a value of a type. Raises TypeError for a type that no message has."""
    origin, given = get_origin(hint), get_args(hint)
    if hint is object:
        return lambda value, _path: value
    if hint in _PLAIN:
        return _plain(cast("type", hint))
    if origin is Annotated:
        return _within(_reader(given[0]), given[1])
    if origin is Literal:
        return _one_of(given)
    if origin in (Union, types.UnionType):
        return _any_of({one: _reader(one) for one in given}, hint)
    if origin is list:
        return _list(_reader(given[0]))
    if origin is dict and given[0] is str:
        return _dict(_reader(given[1]))
    if isinstance(hint, type):
        if dataclasses.is_dataclass(hint):
            return _message(hint)
        if hasattr(hint, "model_validate"):
            return _itself(cast("type[_Record]", hint).model_validate, hint)
        if issubclass(hint, str):
            return _text(hint)
    raise TypeError(f"{hint} is no type of a message's field")


def _plain(kind: type) -> Reader:
    def read(value: object, path: str) -> object:
        if type(value) is not kind or (kind is float and not math.isfinite(cast("float", value))):
            raise _refused(value, path, kind.__name__)
        return value

    return read


def _within(inner: Reader, bounds: Range) -> Reader:
    def read(value: object, path: str) -> object:
        found = inner(value, path)
        amount = len(found) if isinstance(found, (str, list, dict)) else cast("float", found)
        if not bounds.least <= amount <= bounds.most:
            raise NotOfForm(f"{path} is not within {bounds.least} and {bounds.most}")
        return found

    return read


def _one_of(values: tuple[object, ...]) -> Reader:
    def read(value: object, path: str) -> object:
        if not any(type(value) is type(one) and value == one for one in values):
            raise _refused(value, path, " or ".join(map(repr, values)))
        return value

    return read


def _any_of(readers: dict[object, Reader], hint: object) -> Reader:
    def read(value: object, path: str) -> object:
        known = readers.get(type(value))
        if known is not None:  # the usual one: no other is tried in vain
            return known(value, path)
        for inner in readers.values():
            try:
                return inner(value, path)
            except NotOfForm:
                continue
        raise _refused(value, path, str(hint))

    return read


def _list(inner: Reader) -> Reader:
    def read(value: object, path: str) -> object:
        if type(value) is not list:
            raise _refused(value, path, "list")
        return [inner(item, f"{path}[{number}]") for number, item in enumerate(value)]

    return read


def _dict(inner: Reader) -> Reader:
    def read(value: object, path: str) -> object:
        if type(value) is not dict:
            raise _refused(value, path, "object")
        return {key: inner(item, f"{path}[{key[:40]!r}]") for key, item in value.items()}

    return read


def _text(kind: type[str]) -> Reader:
    plain, itself = _plain(str), _itself(kind, kind)
    return lambda value, path: itself(plain(value, path), path)


def _itself(make: Callable[[object], object], kind: type) -> Reader:
    def read(value: object, path: str) -> object:
        try:
            return make(value)
        except ValueError as error:  # pydantic's, too
            raise NotOfForm(f"{path} is no {kind.__name__}: {error}") from error

    return read


def _message(kind: type) -> Reader:
    def read(value: object, path: str) -> object:
        if type(value) is not dict:
            raise _refused(value, path, "object")
        readers, needed = _readers_of(kind)
        if not needed <= value.keys():
            raise NotOfForm(f"{path} lacks {min(needed - value.keys())}")
        given = {}
        for key, item in value.items():
            if key not in readers:
                raise NotOfForm(f"{path} has {key[:40]!r}, which it must not")
            name, inner = readers[key]
            given[name] = inner(item, f"{path}.{key}")
        return kind(**given)

    return read


@cache
def _readers_of(kind: type) -> tuple[dict[str, tuple[str, Reader]], frozenset[str]]:
    """Return name and reader of each field by its key, and the keys that have to be there.

    Asked for at the first message: a class may hold others of its own.
    """
    hints = get_type_hints(kind, include_extras=True)
    fields = dataclasses.fields(kind)
    readers = {_key(field): (field.name, _reader(hints[field.name])) for field in fields}
    needed = (field for field in fields if field.default is field.default_factory is dataclasses.MISSING)
    return readers, frozenset(map(_key, needed))


def _refused(value: object, path: str, wanted: str) -> NotOfForm:
    infinite = type(value) is float and not math.isfinite(value)
    what = "a number that is not finite" if infinite else type(value).__name__
    return NotOfForm(f"{path} is {what}, expected {wanted}")


def _key(field: dataclasses.Field[object]) -> str:
    return field.name.removesuffix("_")


@cache
def _writer(hint: object) -> Writer | None:
    """Return what writes a value of a type; None where it is JSON already."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _object_writer(hint)
    if isinstance(hint, type) and hasattr(hint, "model_dump"):
        return lambda value: cast("_Record", value).model_dump(mode="json")
    origin, given = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _writer(given[0])
    if all(_writer(one) is None for one in given):
        return None
    if origin is list:
        return lambda value: [_written(item) for item in cast("list[object]", value)]
    if origin is dict:
        return lambda value: {key: _written(item) for key, item in cast("dict[str, object]", value).items()}
    return _written  # a union


def _written(value: object) -> object:
    write = _writer(cast("Hashable", type(value)))
    return value if write is None else write(value)


def _object_writer(kind: type) -> Writer:
    def write(message: object) -> dict[str, object]:
        found = {}
        for key, name, inner in _writers_of(kind):
            value = getattr(message, name)
            found[key] = value if inner is None else inner(value)
        return found

    return write


@cache
def _writers_of(kind: type) -> list[tuple[str, str, Writer | None]]:
    """Return key, name and writer of each field; asked for at the first message, as `_readers_of` is."""
    hints = get_type_hints(kind, include_extras=True)
    return [(_key(field), field.name, _writer(hints[field.name])) for field in dataclasses.fields(kind)]
