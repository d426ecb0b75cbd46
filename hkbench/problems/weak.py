"""Which problems an answer passes that was made without doing the work: `hkbench audit` found out.

`weak.json` maps the sha256 of a problem's file to the null controls that pass hkbench's check of it, an empty list
where none does. A problem whose hash is not there was not audited.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

WEAK = Path(__file__).with_name("weak.json")


@functools.cache
def _table() -> dict[str, tuple[str, ...]]:
    found = json.loads(WEAK.read_text(encoding="utf-8"))
    return {sha256: tuple(controls) for sha256, controls in found.items()}


def weak_controls(sha256: str) -> tuple[str, ...] | None:
    """Return the null controls that pass the check of the problem with this hash; `None` when it was not audited."""
    return _table().get(sha256)


def weak_text(found: dict[str, tuple[str, ...]]) -> str:
    """Return the contents of `weak.json` with these problems added or replaced."""
    table = _table() | found
    return json.dumps({sha256: table[sha256] for sha256 in sorted(table)}, indent=1) + "\n"
