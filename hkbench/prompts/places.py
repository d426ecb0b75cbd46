"""The lines of a candidate's kernel source that a message names."""

from __future__ import annotations

import ast
import re

from hipkittens_build.source import LABEL

_PLACE = re.compile(rf"\b{LABEL}:(\d+)\b")
_KERNEL = "__global__"


def quoted(candidate: str | None, message: str) -> list[str]:
    """Return "hip_source:7: TEXT" for each line that `message` names, in its order.

    Nothing where the candidate is no Python, or holds several kernel sources, of which none is the one that is meant.
    """
    numbers = list(dict.fromkeys(int(found[1]) for found in _PLACE.finditer(message)))
    sources = _sources(candidate) if candidate and numbers else []
    if len(sources) != 1:
        return []
    lines = sources[0].split("\n")
    return [f"{LABEL}:{number}: {lines[number - 1].strip()}" for number in numbers if 0 < number <= len(lines)]


def _sources(candidate: str) -> list[str]:
    try:
        tree = ast.parse(candidate)
    except (SyntaxError, ValueError):
        return []
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [text for text in texts if isinstance(text, str) and _KERNEL in text]
