"""The C++ that a candidate's Python file holds in its strings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

#: A definition of a function with a body: what else stands in braces in strings of Python is rarely that.
CODE = re.compile(r"\)[^;{}]*\{.*;", re.DOTALL)


def native_code(source: str) -> Iterator[tuple[int, str]]:
    """Yield each string of a Python file that is C++ code, with the place of its first character in the file.

    Strings with escapes are left out: their characters do not stand in the file as they are.
    """
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.search(node.value)):
            continue
        if not source.isascii():  # columns of the tree count bytes
            continue
        assert node.end_lineno is not None and node.end_col_offset is not None
        begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        at = source.find(node.value, begin, end)
        if at >= 0:
            yield at, node.value
