"""The code blocks of a reply, and what each of them is."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from functools import cached_property

from markdown_it import MarkdownIt
from markdown_it.token import Token

from hkbench.llm.diff import looks_like_diff

PYTHON = frozenset({"python", "py", "python3", "py3", "python2", "ipython"})
DIFF = frozenset({"diff", "patch", "udiff"})
CPP = frozenset({"cpp", "c++", "cxx", "cc", "c", "h", "hpp", "cuh", "cu", "cuda", "hip"})
NOT_CODE = frozenset(
    {"text", "txt", "plaintext", "output", "console", "bash", "sh", "shell", "zsh", "json", "yaml", "toml",
     "markdown", "md", "math", "latex", "mermaid", "log", "csv"}
)  # fmt: skip
MAX_PARSED = 600_000  #: characters of a block; the evaluator reads no larger file, and the parser takes 6 s a megabyte
_MARKDOWN = frozenset({"markdown", "md"})
_MAX_EXTENSIONS = 8  #: later fences tried as the true end of a block

_MODEL_NEW = re.compile(r"^[ \t]*class[ \t]+ModelNew\b", re.MULTILINE)
_CPP_SIGNS = re.compile(r"^[ \t]*#[ \t]*include\b|__global__|\bstd::", re.MULTILINE)
_LOOSE_FENCE = re.compile(
    r"^(?P<before>[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?)(?P<fence>`{3,}+|~{3,}+)(?P<info>[^`\n]*)$"
)
_QUOTE_MARK = re.compile(r"^[ \t]*> ?", re.MULTILINE)
_QUOTED_FENCE = re.compile(r"^[ \t]*> ?[ \t]*(?:```|~~~)", re.MULTILINE)
_FENCE_END = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*$")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language in lower case ("" when none is given), and its text."""

    language: str
    text: str
    closed: bool

    @cached_property
    def tree(self) -> ast.Module | None:
        """The block as Python, or None when it is not Python."""
        return parsed(self.text)

    @cached_property
    def defines_model_new(self) -> bool:
        """Whether it parses as Python and defines the class."""
        if not self.names_model_new or self.tree is None:
            return False
        return any(isinstance(n, ast.ClassDef) and n.name == "ModelNew" for n in ast.walk(self.tree))

    @cached_property
    def names_model_new(self) -> bool:
        """Whether a line of it begins that class, be the block valid or not."""
        return bool(_MODEL_NEW.search(self.text)) and not self.is_diff

    @cached_property
    def is_diff(self) -> bool:
        return self.language in DIFF or looks_like_diff(self.text)

    @cached_property
    def is_cpp(self) -> bool:
        return self.language in CPP or (self.language not in PYTHON and bool(_CPP_SIGNS.search(self.text)))

    def is_python(self) -> bool:
        """Return whether it is meant as Python: by its fence, or because it parses and does something."""
        if self.language in PYTHON:
            return True
        if self.language or self.is_diff or self.is_cpp or self.tree is None:
            return False
        return any(not isinstance(node, ast.Expr) for node in self.tree.body)


def parsed(text: str) -> ast.Module | None:
    """Return the syntax tree of `text`, or None when it is not Python, or too large or nested too deeply to be read."""
    if len(text) > MAX_PARSED:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a stray "\d" in a model's string is not ours to report
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def source_defines_model_new(text: str) -> bool:
    """Return whether `text` is Python that defines ModelNew."""
    return Block("", text, closed=True).defines_model_new


def code_blocks(text: str) -> list[Block]:
    """Return blocks of `text` that may hold code, in order, by the reading that makes most of them.

    Markdown proper comes first. Models also indent fences at will and put fences inside a fenced docstring,
    so two looser readings follow, each used only when it finds the class and the ones before did not.
    """
    if "ModelNew" not in text:
        return _code(_strict(text)) or _code(_loose(text))
    tried: list[list[Block]] = []
    for read in (_strict, _loose, _extended):
        blocks = _code(read(text))
        if any(b.defines_model_new for b in blocks):
            return blocks
        tried.append(blocks)
    return next((blocks for blocks in tried if any(b.names_model_new for b in blocks)), tried[0])


def _code(blocks: list[Block]) -> list[Block]:
    return [b for b in blocks if b.text.strip() and b.language not in NOT_CODE]


def _strict(text: str) -> list[Block]:
    """Return fences as Markdown has them outside lists: indented by at most three columns."""
    lines = text.split("\n")
    return [block for token in _fences(text) for block in _unwrapped(token, lines)]


def _loose(text: str) -> list[Block]:
    """Return fences at any indentation, behind the mark of a list item, and in quotations."""
    if _QUOTED_FENCE.search(text):
        text = _QUOTE_MARK.sub("", text)
    blocks: list[Block] = []
    opened: re.Match[str] | None = None
    body: list[str] = []
    for line in text.split("\n"):
        if opened is None:
            opened = _LOOSE_FENCE.match(line)
            body = []
        elif (end := _FENCE_END.match(line)) and end[1].startswith(opened["fence"]):
            blocks.append(_outdented(opened, body, closed=True))
            opened = None
        else:
            body.append(line)
    if opened is not None:
        blocks.append(_outdented(opened, body, closed=False))
    return blocks


def _outdented(opened: re.Match[str], body: list[str], *, closed: bool) -> Block:
    """Return the block less the indentation of its fence, or as much of it as all its lines have."""
    margins = (len(line) - len(line.lstrip(" \t")) for line in body if line.strip())
    width = min(len(opened["before"]), min(margins, default=0))
    return Block(_language(opened["info"]), "".join(line[width:] + "\n" for line in body), closed)


def _extended(text: str) -> list[Block]:
    """Return the last block that names the class ends at a later fence: the first that makes it parse."""
    lines = text.split("\n")
    tokens = _fences(text)
    blocks = [_block(token, lines) for token in tokens]
    last = max((i for i, block in enumerate(blocks) if block.names_model_new), default=None)
    if last is None or not (span := tokens[last].map):
        return blocks
    ends = (i for i in range(span[1], len(lines)) if _FENCE_END.match(lines[i]))
    for _, end in zip(range(_MAX_EXTENSIONS), ends, strict=False):
        longer = Block(blocks[last].language, "\n".join(lines[span[0] + 1 : end]) + "\n", closed=True)
        if longer.defines_model_new:
            after = [b for b, t in zip(blocks, tokens, strict=True) if t.map and t.map[0] > end]
            return [*blocks[:last], longer, *after]
    return blocks


# Fences and indented code only. Inline text is never looked at (a megabyte of backticks costs nothing). HTML is
# off: with it on, a reply that opens with <think> is one HTML block and holds no code. Lists and quotations are
# left to `_loose`: markdown-it's rules for them take quadratic time on hostile text.
_STRICT = MarkdownIt("zero").enable(["code", "fence"])


def _fences(text: str) -> list[Token]:
    tokens: list[Token] = []
    _STRICT.block.parse(text, _STRICT, {}, tokens)
    return [token for token in tokens if token.type == "fence"]


def _unwrapped(token: Token, lines: list[str]) -> list[Block]:
    """Return the block; of a whole answer wrapped in a markdown fence, the blocks inside."""
    block = _block(token, lines)
    if block.language not in _MARKDOWN:
        return [block]
    inner = block.text.split("\n")
    return [_block(t, inner) for t in _fences(block.text)]


def _block(token: Token, lines: list[str]) -> Block:
    start, end = token.map or [0, 0]
    last = lines[end - 1].strip() if end - 1 > start else ""
    closed = len(last) >= len(token.markup) and not last.strip(token.markup[0])
    return Block(_language(token.info), token.content, closed)


def _language(info: str) -> str:
    """Return the language that a fence names: of "python title=x", "{.python}" and "python:x.py" it is "python"."""
    words = info.split(maxsplit=1)
    return re.split("[:,]", words[0].strip("{}."), maxsplit=1)[0].lower() if words else ""
