"""A state's key: the same for sources that differ in comments and white space only."""

from __future__ import annotations

import ast
import hashlib
import re

from hkbench.moves.python_source import CODE

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SPACE = re.compile(r"[ \t]+")
_LINES = re.compile(r"\s*\n\s*")
LENGTH = 16  #: characters of a key


def key_of(source: str) -> str:
    """Return the key of a candidate's source; of one that is not Python that of its text."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _digest(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _leave_out_docstring(node)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.search(node.value):
            # Comments and empty lines are left out; line ends stay, which pragmas and macros need.
            node.value = _LINES.sub("\n", _SPACE.sub(" ", _COMMENT.sub(" ", node.value))).strip()
    return _digest(ast.dump(tree))


def _leave_out_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        first.value.value = ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]
