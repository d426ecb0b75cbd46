"""The C++ that a candidate's Python file holds in its strings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from hkbench.moves.python_source import PythonSource

#: A definition of a function with a body: what else stands in braces in strings of Python is rarely that.
CODE = re.compile(r"\)[^;{}]*\{.*;", re.DOTALL)


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
