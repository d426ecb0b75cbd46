"""The Triton functions of a file, and where Triton says that one of them is wrong, as a line of the file."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeGuard


class Parameter(Protocol):
    """A parameter of a kernel, as Triton describes it."""

    name: str
    is_constexpr: bool


class Function(Protocol):
    """A function under `triton.jit`."""

    __name__: str
    __globals__: dict[str, object]
    params: Sequence[Parameter]
    src: str  #: from `def` on
    raw_src: Sequence[str]  #: lines, with decorators
    starting_line_number: int
    fn: Callable[..., object]  #: as it was written


def kernels_of(names: Mapping[str, object]) -> dict[str, Function]:
    """Return the functions under `triton.jit` among a module's names, also those below an autotuner or heuristics."""
    jit = importlib.import_module("triton.runtime.jit").JITFunction
    found: dict[str, Function] = {}
    for name, value in names.items():
        function: Any = value
        while not isinstance(function, jit) and hasattr(function, "fn"):
            function = function.fn
        if isinstance(function, jit):
            found[name] = function
    return found


def uses(function: Function, name: str) -> bool:
    """Return whether the text of a function has a name."""
    return re.search(rf"\b{re.escape(name)}\b", function.src) is not None


def innermost(error: BaseException) -> BaseException:
    """Return the innermost error: where one kernel calls another, Triton raises an error for each call."""
    found = error
    while (cause := found.__cause__) is not None and hasattr(cause, "node"):
        found = cause
    return found


def line_of(function: Function, error: BaseException) -> int | None:
    """Return the line of the candidate's file; None where Triton does not say, as for what its later passes refuse."""
    line, source = getattr(getattr(error, "node", None), "lineno", None), getattr(error, "src", None)
    if not isinstance(line, int) or not isinstance(source, str):
        return None
    begin = _beginning(function, source)
    return None if begin is None else begin + line - 1


def _beginning(function: Function, source: str) -> int | None:
    """Return where the text that Triton parsed, a function without its decorators, begins in the file."""
    for one in filter(_is_kernel, (function, *function.__globals__.values())):
        if one.src == source:
            before = next((n for n, line in enumerate(one.raw_src) if re.match(r"\s*def\s", line)), 0)
            return int(one.starting_line_number) + before
    return None


def _is_kernel(value: object) -> TypeGuard[Function]:
    return hasattr(value, "raw_src")
