"""Compute the constants of a Python file without running it: strings put together, formatted, decoded."""

from __future__ import annotations

import ast
import base64
import binascii
import codecs
import operator
import re
import zlib
from collections.abc import Callable
from typing import Protocol

from hkbench.reading.budget import FOLDED_CHARACTERS, Budget

Constant = str | bytes | int | float | tuple[object, ...]

_METHODS = frozenset(
    str.split(
        "join format replace strip lstrip rstrip lower upper decode encode removeprefix removesuffix hex title "
        "swapcase capitalize"
    )
)
_CODECS = frozenset(str.split("rot13 rot_13 hex base64 utf-8 utf8 ascii latin-1 latin1 unicode_escape utf-16"))
_WIDE = re.compile(r"\d{5}")  #: a format that asks for very many characters: `%999999999d`


class Resolver(Protocol):
    """What folding needs of `names.Names`."""

    budget: Budget

    def constant(self, node: ast.AST) -> Constant | None: ...
    def last_constant(self, name: ast.Name) -> Constant | None: ...
    def resolve(self, node: ast.AST) -> frozenset[str]: ...


def fold(node: ast.AST, names: Resolver) -> Constant | None:
    """Return the value of an expression, or None where it is no constant of a plain type within the bound."""
    return _Folder(names).fold(node)


def _plain(value: object) -> Constant | None:
    if isinstance(value, str | bytes | tuple):
        return value if len(value) <= FOLDED_CHARACTERS else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _attempt(function: Callable[..., object], *arguments: object, **keywords: object) -> object:
    try:
        return function(*arguments, **keywords)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, zlib.error):
        return None


def _inflate(data: bytes) -> bytes:
    return zlib.decompressobj().decompress(data, FOLDED_CHARACTERS)


def _decode(data: str | bytes, codec: str = "utf-8") -> object:
    return codecs.decode(data, codec) if codec.lower() in _CODECS else None  # type: ignore[arg-type]


def _reversed(items: str | bytes | tuple[object, ...]) -> tuple[object, ...]:
    return tuple(items)[::-1]


_NUMBER, _TEXT, _MANY = (int, float), (str, bytes), (str, bytes, tuple)
_BASE64 = "b64decode standard_b64decode urlsafe_b64decode b32decode b16decode b85decode a85decode decodebytes"
#: What may be called, and with what: a number makes `bytes` of that length.
_FUNCTIONS: dict[str, tuple[tuple[type, ...], Callable[..., object]]] = {
    **{f"base64.{name}": (_TEXT, getattr(base64, name)) for name in _BASE64.split()},
    "binascii.unhexlify": (_TEXT, binascii.unhexlify),
    "binascii.a2b_base64": (_TEXT, binascii.a2b_base64),
    "zlib.decompress": (_TEXT, _inflate),
    "codecs.decode": (_TEXT, _decode),
    "builtins.bytes.fromhex": (_TEXT, bytes.fromhex),
    "builtins.bytes": ((bytes, tuple), bytes),
    "builtins.chr": (_NUMBER, chr),
    "builtins.str": ((str, *_NUMBER), str),
    "textwrap.dedent": ((str,), str),
    "inspect.cleandoc": ((str,), str),
    "builtins.tuple": (_MANY, tuple),
    "builtins.list": (_MANY, tuple),
    "builtins.reversed": (_MANY, _reversed),
}
_OPERATORS: dict[type[ast.operator], Callable[[object, object], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.BitXor: operator.xor,
}


class _Folder:
    """Fold one expression. `local`: the item that the name of a comprehension stands for just now."""

    def __init__(self, names: Resolver, local: dict[str, object] | None = None) -> None:
        self._names = names
        self._local = local or {}

    def fold(self, node: ast.AST) -> Constant | None:
        return _plain(self._fold(node))

    def _of(self, node: ast.AST | None) -> Constant | None:
        if not self._local or node is None:
            return self._names.constant(node) if node is not None else None
        value = self.fold(node)
        self._names.budget.spend(1 + (len(value) >> 4 if isinstance(value, str | bytes | tuple) else 0))
        return value

    def _fold(self, node: ast.AST) -> object:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._local[name] if name in self._local else self._names.last_constant(node)
            case ast.JoinedStr(values=parts):
                # A hole that is not known still leaves text worth reading.
                shown = [self._of(part.value if isinstance(part, ast.FormattedValue) else part) for part in parts]
                return "".join(str(value) if isinstance(value, str | int | float) else " 0 " for value in shown)
            case ast.BinOp(left=left, op=op, right=right):
                return _binary(self._of(left), op, self._of(right))
            case ast.Tuple(elts=items) | ast.List(elts=items) if len(items) <= 20_000:
                values = tuple(map(self._of, items))
                return values if None not in values else None
            case ast.Subscript(value=base, slice=ast.Slice(lower=lower, upper=upper, step=step)):
                ends = [self._of(end) for end in (lower, upper, step)]
                return _attempt(operator.getitem, self._of(base), slice(*ends))
            case ast.Subscript(value=base, slice=index):
                return _attempt(operator.getitem, self._of(base), self._of(index))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return _attempt(operator.neg, self._of(operand))
            case ast.IfExp(body=body, orelse=other):
                return self._of(body) or self._of(other)
            case ast.GeneratorExp(elt=elt, generators=[one]) | ast.ListComp(elt=elt, generators=[one]):
                return self._comprehension(elt, one)
            case ast.Call():
                return self._call(node)
        return None

    def _comprehension(self, elt: ast.expr, one: ast.comprehension) -> object:
        """Evaluate `chr(c ^ 7) for c in b"..."`."""
        items = self._of(one.iter)
        if one.ifs or not isinstance(one.target, ast.Name) or not isinstance(items, bytes | tuple | str):
            return None
        if len(items) > 5_000:
            return None
        out: list[object] = []
        for item in items:
            value = _Folder(self._names, {**self._local, one.target.id: item}).fold(elt)
            if value is None:
                return None
            out.append(value)
        return tuple(out)

    def _call(self, node: ast.Call) -> object:
        arguments = [self._of(argument) for argument in node.args]
        callees = self._names.resolve(node.func)
        for callee in callees & _FUNCTIONS.keys() if arguments else ():
            types, function = _FUNCTIONS[callee]
            given = arguments[: 2 if callee == "codecs.decode" else 1]
            return _attempt(function, *given) if isinstance(given[0], types) else None
        if "builtins.map" in callees and len(arguments) == 2 and "builtins.chr" in self._names.resolve(node.args[0]):
            return _attempt(lambda codes: tuple(map(chr, codes)), arguments[1])
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            base = self._of(node.func.value)
            keywords = {keyword.arg: self._of(keyword.value) for keyword in node.keywords if keyword.arg is not None}
            if isinstance(base, str | bytes):
                return _method(base, node.func.attr, arguments, keywords)
        return None


def _binary(left: object, op: ast.operator, right: object) -> object:
    if isinstance(op, ast.Add) and (left is None) != (right is None):
        known = right if left is None else left
        return known if isinstance(known, str) and "\n" in known else None  # what can be read of it
    function = _OPERATORS.get(type(op))
    if function is None or left is None or right is None:
        return None
    match left, op, right:
        case int(), ast.Mult(), str() | bytes() | tuple():
            return _binary(right, op, left)
        case (str() | bytes() | tuple(), ast.Mult(), int()) if len(left) * right > FOLDED_CHARACTERS:
            return None
        case str() | bytes(), ast.Mod(), _:
            if not isinstance(left, str) or len(left) > 100_000 or _WIDE.search(left) or "*" in left or "%" not in left:
                return None
        case (int(), ast.Mult(), int()) if abs(left) >= 2**62 or abs(right) >= 2**62:
            return None
    return _attempt(function, left, right)


def _method(
    base: str | bytes, name: str, arguments: list[Constant | None], keywords: dict[str, Constant | None]
) -> object:
    given = [*arguments, *keywords.values()]
    size = len(base) * max((len(a) for a in given if isinstance(a, str | bytes)), default=1)
    match name:
        case "replace" | "format" if None in given:
            return base  # the rest can be read
        case "replace" if size > 10**7:
            return None
        case "format":
            # Fields of constants only: a `str`, `int` or `float` has no attribute that leads anywhere.
            if not isinstance(base, str) or _WIDE.search(base):
                return None
            if any(isinstance(value, int) and abs(value) > 9_999 for value in given):
                return base
            return _attempt(base.format, *arguments, **keywords)
        case "join":
            items = arguments[0] if arguments else None
            if not isinstance(items, tuple | str) or sum(len(str(i)) + len(base) for i in items) > FOLDED_CHARACTERS:
                return None
        case "decode" | "encode" if arguments and str(arguments[0]).lower() not in _CODECS:
            return None
    return _attempt(getattr(base, name), *arguments) if None not in arguments else None
