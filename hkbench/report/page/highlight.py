"""Code and diffs as highlighted HTML. The classes are Pygments'; style.css gives them their colours."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from typing import Any

from markupsafe import Markup

from hkbench.store.tokens import Tokens, code_tokens


def code_html(source: str, marked: Collection[int] = ()) -> Markup:
    """Return a candidate, a `<span>` a line; C++ in its strings is highlighted as C++. Blank lines lose their spaces.

    `marked`: numbers of lines, from 1, that an error names.
    """
    return _lines(code_tokens(source), marked)


def diff_html(before: str, after: str) -> Markup | None:
    """Return the unified diff of two sources; `None` where they do not differ."""
    from pygments.lexers.diff import DiffLexer

    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm=""))[2:]
    if not lines:
        return None
    return _lines(DiffLexer(stripnl=False, ensurenl=False).get_tokens("\n".join(lines)))


def _lines(tokens: Tokens, marked: Collection[int] = ()) -> Markup:
    """Return each line in a `<span>` of its own, for the numbers beside it."""
    from pygments import format as formatted
    from pygments.formatters.html import HtmlFormatter

    html = formatted(_coloured(tokens), HtmlFormatter(nowrap=True)).removesuffix("\n")
    return Markup("\n").join(
        Markup(f"<span{' class=at' if number in marked else ''}>{line}</span>")  # noqa: S704 - escaped by Pygments
        for number, line in enumerate(html.split("\n"), 1)
    )


def _coloured(tokens: Tokens) -> Iterator[tuple[Any, str]]:
    """Yield the tokens, those without a colour of their own as plain text: half of the page's size."""
    from pygments.token import Token

    plain = {Token.Text.Whitespace, Token.Name, Token.Punctuation, Token.Operator, Token.Generic}
    for kind, text in tokens:
        yield (Token.Text if kind in plain else kind), text
