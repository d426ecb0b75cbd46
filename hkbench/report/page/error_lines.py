"""Which lines of a candidate an error names: of Python by number, of a compiler by the source text that it quotes.

A kernel is compiled from a string inside of the candidate, so a compiler's line numbers are not those of the file; the
line that it prints above its caret is looked up instead, and marked where the file has it once.
"""

from __future__ import annotations

import re

_FRAME = re.compile(r'\bFile "[^"]*?(?:candidate|code)\.py", line (\d+)')
_SYNTAX = re.compile(r"^(?:[\w ]+: )?line (\d+)\b")
_SEVERITY = re.compile(r"(?:[:)]) (?:fatal )?(error|warning|note|remark)\b")
_CARET = re.compile(r"^\s*(?:\d* *\|)?[\s~]*\^[\s~^]*$")
_MARGIN = re.compile(r"^\s*\d+ \| ?")
_MIN_QUOTED_LENGTH = 4  #: characters of a quoted line that can be found again: a brace stands everywhere


def error_lines(code: str, message: str, log: str) -> frozenset[int]:
    """Return the numbers of lines of `code`, from 1, that `message` or the tool's `log` calls wrong."""
    source = code.splitlines()
    named = {int(found) for found in _FRAME.findall(log)}
    at = _SYNTAX.match(message)
    if at is not None:
        named.add(int(at[1]))
    wanted = _quoted(log)
    places = [line.strip() for line in source]
    named |= {places.index(text) + 1 for text in wanted if places.count(text) == 1}
    return frozenset(number for number in named if 1 <= number <= len(source))


def _quoted(log: str) -> set[str]:
    """Return the source lines above the carets of errors."""
    found = set()
    severity, before = "", ""
    for line in log.splitlines():
        said = _SEVERITY.search(line)
        if said is not None:
            severity = said[1]
        elif severity == "error" and _CARET.match(line):
            text = _MARGIN.sub("", before).strip()
            if len(text) >= _MIN_QUOTED_LENGTH:
                found.add(text)
        before = line
    return found
