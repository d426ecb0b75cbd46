"""The grammar of the pseudocode in AMD's manuals of instruction sets, read into a tree.

Sequences of statements, `if`/`elsif`/`else`, `for`, `declare`, `lambda`, C's operators, Verilog's slices (`[7 : 0]`,
`[i +: 4]`) and sized literals (`16'1.0`, `1'1U`), views of bits (`.f32`) and braces that join bits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal


class NotPseudocode(Exception):
    """The text is prose or uses what this grammar does not have."""


@dataclass(frozen=True, slots=True)
class Number:
    """`0x10ULL`, `1.0F`, `16'0.5`: its text without size and suffix, the kind of its type, and its width."""

    text: str
    kind: Literal["i", "u", "f"]
    width: int


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class View:
    """`base.f32`: the same bits, seen as a type."""

    base: Expression
    type: str


@dataclass(frozen=True, slots=True)
class Index:
    """`base[at]`: a bit, a register, a lane, or a place in memory."""

    base: Expression
    at: Expression


@dataclass(frozen=True, slots=True)
class Slice:
    """`base[high : low]`; `base[low +: width]` becomes the same. Bits are reversed where high is the lower one."""

    base: Expression
    high: Expression
    low: Expression


@dataclass(frozen=True, slots=True)
class Cast:
    """`32'I(value)`: converted to a type."""

    kind: str
    width: int
    value: Expression


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Choice:
    condition: Expression
    yes: Expression
    no: Expression


@dataclass(frozen=True, slots=True)
class Join:
    """`{ high, ..., low }`."""

    parts: tuple[Expression, ...]


Expression = Number | Name | View | Index | Slice | Cast | Call | Unary | Binary | Choice | Join


@dataclass(frozen=True, slots=True)
class Assign:
    """`targets[0] = targets[1] = value`; `operator` is `+` in `+=`."""

    targets: tuple[Expression, ...]
    operator: str
    value: Expression


@dataclass(frozen=True, slots=True)
class If:
    branches: tuple[tuple[Expression | None, Block], ...]  #: the condition of `else` is None


@dataclass(frozen=True, slots=True)
class For:
    variable: str
    first: Expression
    last: Expression
    body: Block


@dataclass(frozen=True, slots=True)
class Declare:
    """`declare name : 32'F[16]`; `length` is None for a single value."""

    name: str
    kind: str
    width: int
    length: int | None


@dataclass(frozen=True, slots=True)
class Function:
    """`name = lambda(x, y) (...)`: an expression, or statements that return."""

    name: str
    parameters: tuple[str, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Return:
    value: Expression


@dataclass(frozen=True, slots=True)
class Break:
    pass


@dataclass(frozen=True, slots=True)
class Do:
    """An expression for its effect."""

    value: Expression


Statement = Assign | If | For | Declare | Function | Return | Break | Do
Block = tuple[Statement, ...]

_TOKEN = re.compile(
    r"""\s*(?:(?P<type>\d+'(?:BF|[UIFB]))(?=\W|$)
    |(?P<number>(?:\d+')?(?:0x[0-9a-fA-F]+|\d+\.\d+|\d+)(?:ULL|LL|U|F)?)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<operator>\+:|\*\*|<<|>>|<=|>=|==|!=|<>|&&|\|\||\+=|-=|[-+*/%&|^~!<>=?:;,.(){}\[\]]))""",
    re.VERBOSE,
)
_COMMENT = re.compile(r"//[^\n]*")
_LEVELS: tuple[tuple[str, ...], ...] = (
    *(("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!=", "<>"), ("<", "<=", ">", ">="), ("<<", ">>")),
    *(("+", "-"), ("*", "/", "%"), ("**",)),
)
_NUMBER = re.compile(r"(?:(\d+)')?(0x[0-9a-fA-F]+|\d+\.\d+|\d+)(ULL|LL|U|F)?")
_Kind = Literal["i", "u", "f"]
_SUFFIX: dict[str | None, tuple[_Kind, int]] = {
    "U": ("u", 32),
    "ULL": ("u", 64),
    "LL": ("i", 64),
    "F": ("f", 32),
    None: ("i", 32),
}


def parse(text: str) -> Block:
    """Return the statements of the text. Raises NotPseudocode."""
    reader = _Reader(_tokens(_COMMENT.sub("", text)))
    block = reader.block(())
    if reader.here:
        raise NotPseudocode(f"{reader.here!r} stands where a statement should begin")
    return block


def _tokens(text: str) -> list[str]:
    tokens, at, end = [], 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if not found:
            raise NotPseudocode(f"{text[at : at + 20]!r} is no token")
        tokens.append(found.group().strip())
        at = found.end()
    return tokens


def _literal(text: str) -> Number:
    found = _NUMBER.fullmatch(text)
    if not found:
        raise NotPseudocode(f"{text!r} is no number")
    kind, width = _SUFFIX[found[3]]
    if "." in found[2]:
        kind, width = "f", width if found[3] else 64
    return Number(found[2], kind, int(found[1] or width))


class _Reader:
    """Reads tokens from left to right, by recursive descent."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def here(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self, *expected: str) -> str:
        token = self.here
        if not token or (expected and token not in expected):
            raise NotPseudocode(f"{token!r} stands where {' or '.join(expected) or 'more'} is expected")
        self._at += 1
        return token

    def skip(self, token: str) -> bool:
        if self.here != token:
            return False
        self._at += 1
        return True

    def block(self, ends: tuple[str, ...]) -> Block:
        statements: list[Statement] = []
        while True:
            while self.skip(";"):
                pass
            if not self.here or self.here in ends:
                return tuple(statements)
            statements.append(self.statement())

    def statement(self) -> Statement:
        if self.here == "if":
            return self._if()
        if self.here == "for":
            return self._for()
        if self.here == "declare":
            return self._declare()
        if self.skip("return"):
            return Return(self.expression())
        if self.skip("break"):
            return Break()
        targets = [self.expression()]
        while self.here in ("=", "+=", "-="):
            operator = self.take()[0]
            if self.here == "lambda" and isinstance(targets[0], Name):
                return self._function(targets[0].name)
            value = self.expression()
            if self.here != "=":
                return Assign(tuple(targets), "" if operator == "=" else operator, value)
            targets.append(value)
        return Do(targets[0])

    def _if(self) -> If:
        branches: list[tuple[Expression | None, Block]] = []
        self.take("if")
        while True:
            condition = self.expression()
            self.take("then")
            branches.append((condition, self.block(("elsif", "else", "endif"))))
            if not self.skip("elsif"):
                break
        if self.skip("else"):
            branches.append((None, self.block(("endif",))))
        self.take("endif")
        return If(tuple(branches))

    def _for(self) -> For:
        self.take("for")
        variable = self.take()
        self.take("in")
        first = self.expression()
        self.take(":")
        last = self.expression()
        self.take("do")
        body = self.block(("endfor",))
        self.take("endfor")
        return For(variable, first, last, body)

    def _declare(self) -> Declare:
        self.take("declare")
        name = self.take()
        self.take(":")
        kind, width = _type(self.take())
        length = None
        if self.skip("["):
            length = int(self.take())
            self.take("]")
        return Declare(name, kind, width, length)

    def _function(self, name: str) -> Function:
        self.take("lambda")
        self.take("(")
        parameters = [self.take()]
        while self.skip(","):
            parameters.append(self.take())
        self.take(")")
        self.take("(")
        body = self.block((")",))
        self.take(")")
        if len(body) == 1 and isinstance(body[0], Do):
            body = (Return(body[0].value),)
        return Function(name, tuple(parameters), body)

    def expression(self) -> Expression:
        condition = self._binary(0)
        if not self.skip("?"):
            return condition
        yes = self.expression()
        self.take(":")
        return Choice(condition, yes, self.expression())

    def _binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self.here in _LEVELS[level]:
            left = Binary(self.take(), left, self._binary(level + 1))
        return left

    def _unary(self) -> Expression:
        if self.here in ("-", "+", "~", "!"):
            return Unary(self.take(), self._unary())
        return self._postfix(self._primary())

    def _primary(self) -> Expression:
        if self.skip("("):
            inner = self.expression()
            self.take(")")
            return inner
        if self.skip("{"):
            parts = [self.expression()]
            while self.skip(","):
                parts.append(self.expression())
            self.take("}")
            return Join(tuple(parts))
        token = self.take()
        if re.fullmatch(r"\d+'(BF|[UIFB])", token):
            self.take("(")
            value = self.expression()
            self.take(")")
            return Cast(*_type(token), value)
        if token[0].isdigit():
            return _literal(token)
        if not token.isidentifier():
            raise NotPseudocode(f"{token!r} stands where a value is expected")
        return self._call(token) if self.here == "(" else Name(token)

    def _call(self, function: str) -> Call:
        self.take("(")
        arguments = [] if self.here == ")" else [self.expression()]
        while self.skip(","):
            arguments.append(self.expression())
        self.take(")")
        return Call(function, tuple(arguments))

    def _postfix(self, value: Expression) -> Expression:
        while True:
            if self.skip("."):
                value = View(value, self.take())
            elif self.skip("["):
                value = self._bracket(value)
                self.take("]")
            else:
                return value

    def _bracket(self, base: Expression) -> Expression:
        first = self.expression()
        if self.skip(":"):
            return Slice(base, first, self.expression())
        if self.skip("+:"):
            last = Binary("-", Binary("+", first, self.expression()), Number("1", "i", 32))
            return Slice(base, last, first)
        return Index(base, first)


def _type(token: str) -> tuple[str, int]:
    width, _, kind = token.partition("'")
    return kind.lower(), int(width)
