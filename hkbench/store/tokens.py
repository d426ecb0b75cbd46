"""A candidate's code as Pygments' tokens, with the C++ in its strings cut up as C++."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygments.lexer import Lexer

# A string in which a candidate keeps its kernels: prefix and opening quotes, the text, the same quotes.
_QUOTED = re.compile(r"([A-Za-z]*(\"\"\"|'''))(.*)(\2)", re.DOTALL)
_CPP = re.compile(
    r"#\s*include|__global__|\bextern\s+\"C\"|\b(?:void|float|int64_t|torch::Tensor|at::Tensor)\s+\w+\s*\("
)
# Pygments takes time that grows with the square of these; nobody writes so many.
_SPACES = re.compile(r"^[^\S\n]+$", re.MULTILINE)
_BLANK = re.compile(r"(\s{200,})")
_RAW_STRINGS = 50
Tokens = Iterable[tuple[Any, str]]


def code_tokens(source: str) -> Iterator[tuple[Any, str]]:
    """Return the tokens of a candidate. Blank lines lose their spaces."""
    from pygments.lexers.python import PythonLexer

    return _with_cpp(PythonLexer(stripnl=False, ensurenl=False).get_tokens(_SPACES.sub("", source)))


def _with_cpp(tokens: Tokens) -> Iterator[tuple[Any, str]]:
    """Yield the tokens of a Python file, with the strings that hold C++ cut up as such."""
    from pygments.lexers.c_cpp import CppLexer
    from pygments.token import Token

    cpp = CppLexer(stripnl=False, ensurenl=False)  # type: ignore[no-untyped-call]
    held: list[tuple[Any, str]] = []
    for kind, text in tokens:
        if kind in Token.Literal.String:
            held.append((kind, text))
            continue
        yield from _string(held, cpp)
        held = []
        yield kind, text
    yield from _string(held, cpp)


def _string(held: list[tuple[Any, str]], cpp: Lexer) -> Iterator[tuple[Any, str]]:
    quoted = _QUOTED.fullmatch("".join(text for _, text in held)) if held else None
    if quoted is None or not _CPP.search(quoted[3]) or quoted[3].count('R"') > _RAW_STRINGS:
        yield from held
        return
    yield held[0][0], quoted[1]
    for number, part in enumerate(_BLANK.split(quoted[3])):
        yield from [(held[0][0], part)] if number % 2 else cpp.get_tokens(part)
    yield held[-1][0], quoted[4]
