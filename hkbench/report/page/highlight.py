"""Code and diffs as highlighted HTML. The classes are Pygments'; style.css gives them their colours."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

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


def code_html(source: str, marked: Collection[int] = ()) -> Markup:
    """A candidate, a `<span>` a line; C++ in its strings is highlighted as C++. Blank lines lose their spaces.

    `marked`: numbers of lines, from 1, that an error names.
    """
    from pygments.lexers.python import PythonLexer

    return _lines(_with_cpp(PythonLexer(stripnl=False, ensurenl=False).get_tokens(_SPACES.sub("", source))), marked)


def diff_html(before: str, after: str, context: int = 3) -> Markup | None:
    """The unified diff of two sources; `None` where they do not differ."""
    from pygments.lexers.diff import DiffLexer

    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=context, lineterm=""))[2:]
    if not lines:
        return None
    return _lines(DiffLexer(stripnl=False, ensurenl=False).get_tokens("\n".join(lines)))


def _with_cpp(tokens: Tokens) -> Iterator[tuple[Any, str]]:
    """The tokens of a Python file, with the strings that hold C++ cut up as such."""
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


def _lines(tokens: Tokens, marked: Collection[int] = ()) -> Markup:
    """Each line in a `<span>` of its own, for the numbers beside it."""
    from pygments import format as formatted
    from pygments.formatters.html import HtmlFormatter

    html = formatted(_coloured(tokens), HtmlFormatter(nowrap=True)).removesuffix("\n")
    return Markup("\n").join(
        Markup(f"<span{' class=at' if number in marked else ''}>{line}</span>")  # noqa: S704 - escaped by Pygments
        for number, line in enumerate(html.split("\n"), 1)
    )


def _coloured(tokens: Tokens) -> Iterator[tuple[Any, str]]:
    """The tokens, those without a colour of their own as plain text: half of the page's size."""
    from pygments.token import Token

    plain = {Token.Text.Whitespace, Token.Name, Token.Punctuation, Token.Operator, Token.Generic}
    for kind, text in tokens:
        yield (Token.Text if kind in plain else kind), text
