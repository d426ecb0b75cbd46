"""Expressions over shapes: whole numbers, + - * // %, cdiv, min and max, in Python and in C++."""

from __future__ import annotations

import ast
from collections.abc import Collection

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Mod: "%"}
_FUNCTIONS = {"cdiv": "cdiv", "min": "smaller", "max": "larger"}
#: What C++ text by `in_cpp` needs.
CPP_FUNCTIONS = """\
static inline int64_t cdiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
"""


def check(expression: str | int, names: Collection[str]) -> None:
    """Raise ValueError, with what is wrong, where an expression is none or has an unknown name."""
    _walk(_parsed(expression), frozenset(names))


def in_python(expression: str | int) -> str:
    """Return the expression as Python; it calls `cdiv`, `min` and `max`."""
    return ast.unparse(_parsed(expression))


def in_cpp(expression: str | int) -> str:
    """Return the expression as C++, for numbers that are not negative; it calls CPP_FUNCTIONS."""
    return _cpp(_parsed(expression))


def _parsed(expression: str | int) -> ast.expr:
    try:
        return ast.parse(str(expression), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(
            f"{expression!r} is no expression: write names, numbers, + - * // %, cdiv, min, max"
        ) from error


def _walk(node: ast.expr, names: frozenset[str]) -> None:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return
        case ast.Name(id=name):
            if name not in names:
                raise ValueError(f"there is no size {name}: name one of {', '.join(sorted(names)) or 'none'}")
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            _walk(left, names)
            _walk(right, names)
        case ast.Call(func=ast.Name(id=function), args=[left, right], keywords=[]) if function in _FUNCTIONS:
            _walk(left, names)
            _walk(right, names)
        case _:
            raise ValueError(f"{ast.unparse(node)} is not allowed: write names, numbers, + - * // %, cdiv, min, max")


def _cpp(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=value):
            return str(value)
        case ast.Name(id=name):
            return name
        case ast.BinOp(left=left, op=operator, right=right):
            return f"({_cpp(left)} {_OPERATORS[type(operator)]} {_cpp(right)})"
        case ast.Call(func=ast.Name(id=function), args=[left, right]):
            return f"{_FUNCTIONS[function]}({_cpp(left)}, {_cpp(right)})"
    raise ValueError(f"{ast.unparse(node)} was not checked")
