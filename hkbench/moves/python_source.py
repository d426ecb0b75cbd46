"""Places in a candidate's Python file, from its syntax tree, and the C++ that its strings hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from hkbench.moves.base import Site, Span

#: A definition of a function with a body: what else stands in braces in strings of Python is rarely that.
CODE = re.compile(r"\)[^;{}]*\{.*;", re.DOTALL)


class PythonSource:
    """A Python file whose nodes are asked for their place. Columns of the tree count bytes: it has to be ASCII."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.nodes = list(ast.walk(ast.parse(source))) if source.isascii() else []
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.expr) -> Span:
        """Return where a node stands."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1] + node.end_col_offset

    def calls(self, function: str) -> Iterator[ast.Call]:
        """Yield the calls of a function, by its name as it is written."""
        for node in self.nodes:
            if isinstance(node, ast.Call) and ast.unparse(node.func) == function:
                yield node

    def further_keywords(
        self, move: str, label: str, function: str, choices: Sequence[str], unless: set[str]
    ) -> list[Site]:
        """Find calls that can be given one of some keywords, the first of `choices` being none.

        Those that have one of the keywords `unless` are left out.
        """
        texts = ("", *(f", {choice}" for choice in choices[1:]))
        found: list[Site] = []
        for node in self.calls(function):
            if unless & {keyword.arg for keyword in node.keywords}:
                continue
            arguments = self.source[: self.span(node)[1] - 1].rstrip()
            at = len(arguments) - arguments.endswith(",")
            name = f"{label} {len(found) + 1}"
            found.append(Site(move, name, tuple(choices), 0, ((at, at),), tuple((text,) for text in texts)))
        return found


def native_code(source: str) -> Iterator[tuple[int, str]]:
    """Yield each string of a Python file that is C++ code, with the place of its first character in the file.

    Strings with escapes are left out: their characters do not stand in the file as they are.
    """
    file = PythonSource(source)
    for node in file.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.search(node.value):
            at = source.find(node.value, *file.span(node))
            if at >= 0:
                yield at, node.value
