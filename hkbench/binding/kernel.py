"""A kernel as its text declares it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

#: What the constant is called that says how many elements a Triton program has.
BLOCK = re.compile(r"x?block\w*|tile\w*|bs", re.IGNORECASE)


class NotCertain(Exception):
    """A kernel could be called in several ways, or in none. The message says what is missing, and what to ask for."""


class Kind(StrEnum):
    """What a parameter takes."""

    POINTER = "pointer"
    SCALAR = "scalar"
    CONSTANT = "constant"  #: of Triton: `tl.constexpr`


class Shape(StrEnum):
    """How the work is given out."""

    ELEMENTS = "elements"  #: each program or thread has its own elements of a flat array
    ROWS = "rows"  #: each program or workgroup has one row
    CALLED = "called"  #: C++ on a CPU: called once


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel."""

    name: str
    kind: Kind
    dtype: str | None = None  #: as torch calls it, where the declaration says it
    default: object = None  #: of a constant
    written: bool = False  #: the kernel stores through it


@dataclass(frozen=True)
class BareKernel:
    """A kernel that nothing launches, with the text that defines it."""

    name: str
    source: str
    parameters: tuple[Parameter, ...]
    shape: Shape
    threads: int | None = None  #: of a workgroup, where the text says it

    def of_kind(self, kind: Kind) -> tuple[Parameter, ...]:
        """Return the parameters of one kind, in their order."""
        return tuple(one for one in self.parameters if one.kind is kind)


def stem(name: str) -> str:
    """Return a parameter's name without what says that it is a pointer: x of x_ptr, ptr_x, x_pointer, d_x."""
    text = name.lower().removeprefix("ptr_").removeprefix("d_")
    for ending in ("_ptrs", "_ptr", "_pointer", "_p"):
        text = text.removesuffix(ending)
    return text.strip("_")
