"""Where tensors lie in the two regions, and the arguments that are made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a tensor lies in a region."""

    dtype: str  #: a name of `memory.DTYPES`
    shape: list[int]
    strides: list[int]  #: in elements
    offset: int  #: of its first element, in bytes
    span: int  #: elements from the first to the last one in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorArgument:
    """A tensor."""

    tensor: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class ListArgument:
    """A list or a tuple."""

    list_: list[Argument]
    tuple_: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DictArgument:
    """A dict whose keys are texts."""

    dict_: dict[str, Argument]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainArgument:
    """A value that JSON can carry as it is."""

    value: object


#: An argument of `forward` or of the constructor.
Argument = TensorArgument | ListArgument | DictArgument | PlainArgument


def places_in(argument: Argument) -> Iterator[Place]:
    """Yield the places of the tensors of an argument, in the order in which `wire.leaves` has these."""
    match argument:
        case TensorArgument():
            yield argument.tensor
        case ListArgument():
            for part in argument.list_:
                yield from places_in(part)
        case DictArgument():
            for part in argument.dict_.values():
                yield from places_in(part)
