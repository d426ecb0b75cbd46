"""How far candidates can be confined on this machine, found out once a test process."""

from __future__ import annotations

import functools
from typing import Any

from hkbench.sandbox.survey import survey


@functools.cache
def surveyed() -> dict[str, Any]:
    """Level, layers, what holds and what is missing."""
    return survey()


def runner_layers() -> tuple[str, ...]:
    """Return the layers that a runner puts on itself."""
    return tuple(layer for layer in surveyed()["layers"] if layer not in ("guard", "bubblewrap"))
