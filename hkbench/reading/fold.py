"""Computes the constants of a Python file without running it: strings put together, formatted, decoded."""

from __future__ import annotations

import ast
import base64
import binascii
import codecs
import zlib
from typing import Protocol

from hkbench.reading.budget import FOLDED_CHARACTERS
from hkbench.reading.scopes import Binding

Constant = str | bytes | int | float | tuple[object, ...]

_METHODS = frozenset(
    [
        "join",
        "format",
        "replace",
        "strip",
        "lstrip",
        "rstrip",
        "lower",
        "upper",
        "decode",
        "encode",
        "removeprefix",
        "removesuffix",
        "hex",
        "title",
        "swapcase",
        "capitalize",
        "zfill",
    ]
)
_DECODERS = {
    "base64.b64decode": base64.b64decode,
    "base64.standard_b64decode": base64.b64decode,
    "base64.urlsafe_b64decode": base64.urlsafe_b64decode,
    "base64.b32decode": base64.b32decode,
    "base64.b16decode": base64.b16decode,
    "base64.b85decode": base64.b85decode,
    "base64.a85decode": base64.a85decode,
    "base64.decodebytes": base64.decodebytes,
    "binascii.unhexlify": binascii.unhexlify,
    "binascii.a2b_base64": binascii.a2b_base64,
    "builtins.bytes.fromhex": bytes.fromhex,
}
_CODECS = frozenset(
    [
        "rot13",
        "rot_13",
        "hex",
        "base64",
        "utf-8",
        "utf8",
        "ascii",
        "latin-1",
        "latin1",
        "unicode_escape",
        "zlib",
        "utf-16",
    ]
)


class Resolver(Protocol):
    """What folding needs of `names.Names`."""

    def constant(self, node: ast.AST) -> Constant | None: ...
    def last_constant(self, nodes: list[ast.AST]) -> Constant | None: ...
    def resolve(self, node: ast.AST) -> frozenset[str]: ...
    def values(self, name: ast.Name) -> list[Binding]: ...


def fold(node: ast.AST, names: Resolver) -> Constant | None:
    """The value of an expression, or None where it is not a constant of a plain type or is longer than the bound."""
    value = _fold(node, names)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str | bytes | tuple) and len(value) > FOLDED_CHARACTERS:
        return None
    return value if isinstance(value, str | bytes | int | float | tuple) else None


def _fold(node: ast.AST, names: Resolver) -> object:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name():
            bound = names.values(node)
            usable = [b for b in bound if b.kind in {"value", "parameter"} and b.node is not None]
            return names.last_constant([b.node for b in usable if b.node is not None])
        case ast.JoinedStr(values=parts):
            # A hole that is not known still leaves text worth reading.
            return "".join(_shown(part, names) for part in parts)
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(names.constant(left), op, names.constant(right))
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return _sequence(items, names)
        case ast.Subscript(value=base, slice=index):
            return _subscript(names.constant(base), index, names)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = names.constant(operand)
            return -number if isinstance(number, int | float) else None
        case ast.IfExp(body=body, orelse=other):
            return names.constant(body) or names.constant(other)
        case ast.GeneratorExp() | ast.ListComp():
            return _comprehension(node, names)
        case ast.Call():
            return _call(node, names)
    return None


def _shown(part: ast.expr, names: Resolver) -> str:
    value = names.constant(part.value if isinstance(part, ast.FormattedValue) else part)
    return str(value) if isinstance(value, str | int | float) else " 0 "


def _sequence(items: list[ast.expr], names: Resolver) -> tuple[object, ...] | None:
    values = tuple(names.constant(item) for item in items)
    return None if len(values) > 20_000 or any(value is None for value in values) else values


def _binary(left: object, op: ast.operator, right: object) -> object:
    match left, op, right:
        case (str(), ast.Add(), str()) | (bytes(), ast.Add(), bytes()) | (tuple(), ast.Add(), tuple()):
            return left + right  # type: ignore[operator]
        case (str() as text, ast.Add(), None) | (None, ast.Add(), str() as text) if "\n" in text:
            return text  # what can be read of a source that is computed in part
        case str(), ast.Mod(), _ if right is not None and "%" in left:
            try:
                return left % right if len(left) < 100_000 and "*" not in left and not _wide(left) else None
            except (TypeError, ValueError, KeyError):
                return None
        case (str() | bytes(), ast.Mult(), int()) if right >= 0 and len(left) * right <= FOLDED_CHARACTERS:
            return left * right
        case int(), ast.Add(), int():
            return left + right
        case int(), ast.Sub(), int():
            return left - right
        case (int(), ast.Mult(), int()) if abs(left) < 2**62 and abs(right) < 2**62:
            return left * right
        case int(), ast.BitXor(), int():
            return left ^ right
    return None


def _wide(pattern: str) -> bool:
    """A format that asks for very many characters: `%999999999d`."""
    run = 0
    for character in pattern:
        run = run + 1 if character.isdigit() else 0
        if run > 4:
            return True
    return False


def _subscript(base: object, index: ast.expr, names: Resolver) -> object:
    if not isinstance(base, str | bytes | tuple):
        return None
    if isinstance(index, ast.Slice):
        ends = [names.constant(end) if end is not None else None for end in (index.lower, index.upper, index.step)]
        known = [end for end in ends if end is None or isinstance(end, int)]
        return base[slice(*known)] if len(known) == 3 and known[2] != 0 else None
    at = names.constant(index)
    return base[at] if isinstance(at, int) and -len(base) <= at < len(base) else None


def _comprehension(node: ast.GeneratorExp | ast.ListComp, names: Resolver) -> object:
    """`chr(c) for c in (1, 2, 3)`, and `chr(c ^ 7) for c in b"..."`."""
    generator = node.generators[0]
    items = names.constant(generator.iter)
    if len(node.generators) > 1 or generator.ifs or not isinstance(generator.target, ast.Name):
        return None
    if not isinstance(items, bytes | tuple | str) or len(items) > 5_000:
        return None
    out = []
    for item in items:
        value = _element(node.elt, generator.target.id, item, names)
        if value is None:
            return None
        out.append(value)
    return tuple(out)


def _element(node: ast.expr, name: str, item: object, names: Resolver) -> object:
    match node:
        case ast.Name(id=used) if used == name:
            return item
        case ast.Call(func=function, args=[argument]) if names.resolve(function) & {"builtins.chr"}:
            return _character(_element(argument, name, item, names))
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(_element(left, name, item, names), op, _element(right, name, item, names))
        case ast.Constant(value=value):
            return value
    return None


def _character(code: object) -> str | None:
    return chr(code) if isinstance(code, int) and 0 <= code < 0xD800 else None


def _call(node: ast.Call, names: Resolver) -> object:
    arguments = [names.constant(argument) for argument in node.args]
    for callee in names.resolve(node.func):
        if callee in _DECODERS or callee in {"zlib.decompress", "codecs.decode"}:
            return _decode(callee, arguments)
        if callee == "builtins.chr" and arguments:
            return _character(arguments[0])
        if callee in {"builtins.str", "builtins.bytes", "textwrap.dedent", "inspect.cleandoc"} and arguments:
            return _converted(callee, arguments[0])
        if callee == "builtins.map" and len(arguments) == 2 and names.resolve(node.args[0]) & {"builtins.chr"}:
            codes = arguments[1]
            letters = [_character(c) for c in codes] if isinstance(codes, tuple | bytes) else [None]
            return tuple(letters) if None not in letters else None
        if callee in {"builtins.reversed", "builtins.tuple", "builtins.list"} and arguments:
            items = arguments[0]
            if isinstance(items, str | tuple | bytes):
                return tuple(items)[:: -1 if callee.endswith("reversed") else 1]
    if isinstance(node.func, ast.Attribute):
        return _method(node, names.constant(node.func.value), arguments, names)
    return None


def _converted(callee: str, value: object) -> object:
    if callee == "builtins.bytes" and isinstance(value, tuple):
        codes = [v for v in value if isinstance(v, int) and 0 <= v < 256]
        return bytes(codes) if len(codes) == len(value) else None
    if callee == "builtins.bytes":
        return value if isinstance(value, bytes) else None
    return str(value) if isinstance(value, str | int | float) else None


def _decode(callee: str, arguments: list[Constant | None]) -> object:
    data = arguments[0] if arguments else None
    if not isinstance(data, str | bytes):
        return None
    try:
        if callee == "zlib.decompress":
            return zlib.decompressobj().decompress(data, FOLDED_CHARACTERS) if isinstance(data, bytes) else None
        if callee == "codecs.decode":
            codec = arguments[1] if len(arguments) > 1 else "utf-8"
            known = isinstance(codec, str) and codec.lower() in _CODECS and codec.lower() != "zlib"
            return codecs.decode(data, codec) if known else None  # type: ignore[type-var, arg-type, unused-ignore]
        return _DECODERS[callee](data)  # type: ignore[operator]
    except (ValueError, TypeError, LookupError, zlib.error):
        return None


def _method(node: ast.Call, base: object, arguments: list[Constant | None], names: Resolver) -> object:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name not in _METHODS or not isinstance(base, str | bytes):
        return None
    if name == "replace" and None in arguments:
        return base  # the rest can be read
    if name == "replace" and len(base) * max((len(a) for a in arguments if isinstance(a, str)), default=1) > 10**7:
        return None
    if name == "format":
        keywords: dict[str, object] = {k.arg: names.constant(k.value) for k in node.keywords if k.arg is not None}
        if not isinstance(base, str) or _wide(base):
            return None
        # Fields of constants only: a `str`, `int` or `float` has no attribute that leads anywhere.
        given = [*arguments, *keywords.values()]
        if any(v is None or (isinstance(v, int) and abs(v) > 9_999) for v in given):
            return base
        return _quietly(base, name, arguments, keywords)
    if None in arguments or name == "zfill":
        return None
    if name == "join":
        items = arguments[0] if arguments else None
        if not isinstance(items, tuple | str) or sum(len(str(i)) + len(base) for i in items) > FOLDED_CHARACTERS:
            return None
    if name in {"decode", "encode"} and arguments and str(arguments[0]).lower() not in _CODECS:
        return None
    return _quietly(base, name, arguments, {})


def _quietly(base: str | bytes, name: str, arguments: list[Constant | None], keywords: dict[str, object]) -> object:
    try:
        return getattr(base, name)(*arguments, **keywords)
    except (ValueError, TypeError, LookupError, AttributeError):
        return None
