"""C++ as the compiler sees it: comments taken out, macros expanded. Every branch of a conditional is kept."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

import pcpp  # type: ignore[import-untyped]
from pcpp.parser import Action  # type: ignore[import-untyped]

from hkbench.reading.budget import CPP_CHARACTERS, Budget, TooMuch

_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w+)(.*)", re.DOTALL)
# What is not closed ends with the text; a quote that is not (an apostrophe in `#error`, a digit separator) is dropped.
_LEXEME = re.compile(
    r"""(?P<comment>//(?:[^\\\n]+|\\\n?)*+|/\*.*?(?:\*/|\Z))"""
    r"""|R"(?P<mark>[^\s()\\]{0,16})\((?P<raw>.*?)(?:\)(?P=mark)"|\Z)"""
    r"""|(?P<string>"(?:[^"\\\n]|\\.){0,4000}+"|'(?:[^'\\\n]|\\.){0,4000}+')|["']""",
    re.DOTALL,
)
_LINE = re.compile(r"(?:[^\\\n]+|\\\n?)++")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+).*", re.MULTILINE)
_MAX_STRING_LENGTH = 4_000
_MAX_LINE_LENGTH = 50_000
# The place of a node costs a walk along its line.
_WIDTH = 400
_BREAKS = frozenset(",;{}")


@dataclass
class Scanned:
    """Source without comments. Lines keep their numbers."""

    text: str = ""
    comments: list[tuple[str, int]] = field(default_factory=list)
    directives: list[tuple[str, int]] = field(default_factory=list)  #: `#include X` and `#pragma X`


@dataclass
class Expanded:
    """Preprocessed text."""

    text: str
    lines: list[int]  #: `lines[i]` is the source line of its line i (from 0)
    words: dict[str, list[int]]  #: the source lines of each identifier


def scan(source: str, budget: Budget) -> Scanned:
    """Take out comments, includes and pragmas; raw strings become plain ones. In one pass, from left to right."""
    found = Scanned()

    def replaced(match: re.Match[str]) -> str:
        kind, whole = match.lastgroup, match.group()
        budget.spend(1 if kind else _MAX_STRING_LENGTH >> 3)
        if kind == "string":
            return whole
        if kind == "comment":
            found.comments.append((whole, 1 + source.count("\n", 0, match.start())))
        raw = (match["raw"] or "")[:_MAX_STRING_LENGTH].replace("\\", " ").replace('"', "'").replace("\n", " ")
        return (f'"{raw}"' if kind == "raw" else " ") + "\n" * whole.count("\n")

    found.text = _directives(_LEXEME.sub(replaced, source), found)
    return found


def _directives(text: str, found: Scanned) -> str:
    """Blank every directive but `#define`: both branches of a conditional are read. Lines are joined at backslashes."""

    def kept(match: re.Match[str]) -> str:
        whole = match.group().replace("\\\n", "").removesuffix("\\")
        if len(whole) > _MAX_LINE_LENGTH:
            raise TooMuch("a very long line")
        ends = "\n" * match.group().count("\n")
        directive = _DIRECTIVE.match(whole)
        if directive is None or directive[1] == "define":
            return whole + ends
        name = "include" if directive[1] in {"include", "include_next", "import", "embed"} else directive[1]
        if name in {"include", "pragma"}:
            line = 1 + match.string.count("\n", 0, match.start())
            found.directives.append((f"#{name} {directive[2].strip()}", line))
        return ends

    return _LINE.sub(kept, text.replace("%:", "#"))  # a digraph


class _Preprocessor(pcpp.Preprocessor):  # type: ignore[misc]
    """Stay within a budget and never open a file."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self._budget = budget
        self.line_directive = None

    def expand_macros(self, tokens: list[object], expanding_from: list[str] = []) -> list[object]:  # noqa: B006
        self._budget.spend(len(tokens) + 1)
        if len(expanding_from) > 200:
            raise TooMuch("macros nested very deeply")
        expanded: list[object] = super().expand_macros(tokens, expanding_from)
        self._budget.spend(len(expanded))
        return expanded

    def on_include_not_found(self, *_: object) -> None:
        raise pcpp.OutputDirective(Action.IgnoreAndRemove)

    def on_error(self, *_: object) -> None:
        """Ignore the error: a source that does not preprocess does not compile either."""


def expand(text: str, defines: list[str], budget: Budget) -> list[Expanded]:
    """Expand the macros of the text; do so twice (last and first definition) where a macro has several."""
    if len(text) > CPP_CHARACTERS:
        raise TooMuch("more C++ than is read")
    seen: set[str] = set()

    def first(match: re.Match[str]) -> str:
        again = match[1] in seen
        seen.add(match[1])
        return "" if again else match.group()

    return [_expanded(version, defines, budget) for version in dict.fromkeys([text, _DEFINE.sub(first, text)])]


def _expanded(text: str, defines: list[str], budget: Budget) -> Expanded:
    preprocessor = _Preprocessor(budget)
    for define in defines[:200]:
        name, _, value = define.partition("=")
        if re.fullmatch(r"\w+(\([\w, ]*\))?", name) and "\n" not in value:
            preprocessor.define(f"{name} {value or 1}")
    preprocessor.parse(text)
    pieces: list[str] = []
    lines: list[int] = []
    words: dict[str, list[int]] = defaultdict(list)
    length = start = 0
    value, current = "", -1
    while (token := preprocessor.token()) is not None:
        budget.spend()
        if token.lineno != current or (length > start + _WIDTH and value in _BREAKS):
            pieces.append("\n" if lines else "")
            lines.append(token.lineno)
            current, start = token.lineno, length
        value = str(token.value).replace("\n", " ")
        pieces.append(value)
        if token.type == preprocessor.t_ID:
            words[value].append(current)
        length += len(value)
        if length > 4 * CPP_CHARACTERS:
            raise TooMuch("macros that expand to very much")
    return Expanded("".join(pieces), lines, words)
