"""C++ as the compiler sees it: comments taken out, macros expanded. Every branch of a conditional is kept."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pcpp  # type: ignore[import-untyped]
from pcpp.parser import Action  # type: ignore[import-untyped]

from hkbench.reading.budget import CPP_CHARACTERS, Budget, TooMuch

_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w+)(.*)", re.DOTALL)
_LEXEMES = re.compile(
    r"""(?P<raw>R"(?P<mark>[^\s()\\]{0,16})\()|(?P<line>//)|(?P<block>/\*)|(?P<quote>["'])|(?P<splice>\\\n)|(?P<newline>\n)"""
    r"""|(?P<other>[^"'/\\\nR]+|.)"""
)
_STRING = {
    '"': re.compile(r'(?:[^"\\\n]|\\.){0,4000}+', re.DOTALL),
    "'": re.compile(r"(?:[^'\\\n]|\\.){0,4000}+", re.DOTALL),
}
_LONGEST_STRING = 4_000
_LONGEST_LINE = 50_000


@dataclass
class Scanned:
    """Source without comments. Lines keep their numbers."""

    text: str = ""
    comments: list[tuple[str, int]] = field(default_factory=list)
    includes: list[tuple[str, int]] = field(default_factory=list)
    pragmas: list[tuple[str, int]] = field(default_factory=list)


@dataclass
class Expanded:
    """Preprocessed text; `lines[i]` is the source line of its line i (from 0)."""

    text: str
    lines: list[int]


def scan(source: str, budget: Budget) -> Scanned:
    """Takes out comments, includes and pragmas; raw strings become plain ones. In one pass, from left to right."""
    found = Scanned()
    pieces: list[str] = []
    at, line = 0, 1
    while at < len(source):
        budget.spend()
        match = _LEXEMES.match(source, at)
        if match is None:
            break
        kind, end, piece = match.lastgroup, match.end(), match.group()
        if match["raw"]:
            close = source.find(f'){match["mark"]}"', end)
            stop = len(source) if close < 0 else close
            body = source[end:stop]
            piece = '"' + body[:_LONGEST_STRING].replace("\\", " ").replace('"', "'").replace("\n", " ") + '"'
            piece += "\n" * body.count("\n")
            end = len(source) if close < 0 else close + len(match["mark"] or "") + 2
        elif kind == "line":
            end = _line_end(source, end)
            found.comments.append((source[at:end], line))
            piece = " " + "\n" * source.count("\n", at, end)
        elif kind == "block":
            close = source.find("*/", end)
            end = len(source) if close < 0 else close + 2
            found.comments.append((source[at:end], line))
            piece = " " + "\n" * source.count("\n", at, end)
        elif kind == "quote":
            body_match = _STRING[piece].match(source, end)
            body_end = body_match.end() if body_match is not None else end
            budget.spend((body_end - end) >> 3)
            closed = source[body_end : body_end + 1] == piece
            # A quote that is not closed (an apostrophe in `#error`, a digit separator) is dropped.
            if closed and body_end - end <= _LONGEST_STRING:
                end = body_end + 1
                piece = source[at:end]
            else:
                piece = " "
        line += source.count("\n", at, end)
        pieces.append(piece)
        at = end
    _directives("".join(pieces), found)
    return found


def _line_end(source: str, at: int) -> int:
    end = source.find("\n", at)
    while end > 0 and source[end - 1] == "\\":
        end = source.find("\n", end + 1)
    return len(source) if end < 0 else end


def _directives(text: str, found: Scanned) -> None:
    """Blanks every directive but `#define` and `#undef`: both branches of a conditional are read."""
    kept: list[str] = []
    lines = text.replace("%:", "#").split("\n")  # a digraph
    at = 0
    while at < len(lines):
        first = at
        while lines[at].endswith("\\") and at + 1 < len(lines):
            at += 1
        whole = "".join(part.removesuffix("\\") for part in lines[first : at + 1])
        if len(whole) > _LONGEST_LINE:
            raise TooMuch("a very long line")
        match = _DIRECTIVE.match(whole) if "#" in whole else None
        word = match[1] if match is not None else None
        if match is not None and word in {"include", "include_next", "import", "embed"}:
            found.includes.append((match[2].strip(), first + 1))
        elif match is not None and word == "pragma":
            found.pragmas.append((match[2].strip(), first + 1))
        kept.append(whole if word is None or word == "define" else "")
        kept.extend([""] * (at - first))
        at += 1
    found.text = "\n".join(kept)


class _Preprocessor(pcpp.Preprocessor):  # type: ignore[misc]
    """Stays within a budget and never opens a file."""

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
        """A source that does not preprocess does not compile either."""


def expand(text: str, defines: list[str], budget: Budget) -> list[Expanded]:
    """The text with its macros expanded; twice where a macro has several definitions: the last wins, the first wins."""
    if len(text) > CPP_CHARACTERS:
        raise TooMuch("more C++ than is read")
    versions = [text]
    kept, seen = [], set()
    for line in text.split("\n"):
        name = re.match(r"[ \t]*#[ \t]*define[ \t]+(\w+)", line)
        again = name is not None and name[1] in seen
        if name is not None:
            seen.add(name[1])
        kept.append("" if again else line)
    if (first_wins := "\n".join(kept)) != text:
        versions.append(first_wins)
    return [_expanded(version, defines, budget) for version in versions]


def _expanded(text: str, defines: list[str], budget: Budget) -> Expanded:
    preprocessor = _Preprocessor(budget)
    for define in defines[:200]:
        name, _, value = define.partition("=")
        if re.fullmatch(r"\w+(\([\w, ]*\))?", name) and "\n" not in value:
            preprocessor.define(f"{name} {value or 1}")
    preprocessor.parse(text)
    pieces: list[str] = []
    lines: list[int] = []
    length = 0
    current = -1
    while (token := preprocessor.token()) is not None:
        budget.spend()
        value = str(token.value)
        if token.lineno != current:
            pieces.append("\n" if lines else "")
            lines.append(token.lineno)
            current = token.lineno
        value = value.replace("\n", " ")
        length += len(value)
        if length > 4 * CPP_CHARACTERS:
            raise TooMuch("macros that expand to very much")
        pieces.append(value)
    return Expanded("".join(pieces), lines)
