"""Proton, the profiler that comes with Triton: times and numbers of launches, by the driver's own tracing library.

Format: what `triton.profiler.finalize` writes as "hatchet", as third_party/proton/test/examples of Triton 3.6 has it:
JSON, a list of a tree and of the devices. A node has a frame with a name, children and metrics; a kernel's has the
device that it ran on, how often, and for how many nanoseconds in all.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hkbench.profile.tables import MAX_NUMBER, MAX_ROWS, read_text, unreadable

MODULE = "triton.profiler"
SESSION = "proton"
FILE = f"{SESSION}.hatchet"
_TIME, _COUNT, _DEVICE = "time (ns)", "count", "device_id"


def is_installed() -> bool:
    """Return whether this Python has Proton."""
    try:
        return importlib.util.find_spec(MODULE) is not None
    except (ImportError, ValueError):
        return False


def read(path: Path) -> list[tuple[str, float, float]]:
    """Return name, launches and seconds of each kernel of a session; one that was called from two places counts once.

    Raises:
        InputMissing: there is no such file.
        ProfileUnreadable: it is damaged, or holds no kernel.
    """
    try:
        told = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise unreadable(path, f"is not JSON ({error})") from None
    found: dict[str, tuple[float, float]] = {}
    for name, launches, seconds in _kernels(path, told):
        before = found.get(name, (0.0, 0.0))
        found[name] = before[0] + launches, before[1] + seconds
    if not found:
        raise unreadable(path, "holds no kernel")
    return [(name, *totals) for name, totals in found.items()]


def _kernels(path: Path, told: Any) -> Iterator[tuple[str, float, float]]:
    left: list[Any] = [told]
    for _ in range(MAX_ROWS):
        if not left:
            return
        node = left.pop()
        if isinstance(node, list):
            left += node
        elif isinstance(node, dict):
            left.append(node.get("children"))
            metrics, frame = node.get("metrics"), node.get("frame")
            if isinstance(metrics, dict) and _DEVICE in metrics:
                name = frame.get("name") if isinstance(frame, dict) else None
                launches, nanoseconds = (_number(metrics.get(key)) for key in (_COUNT, _TIME))
                if not isinstance(name, str) or launches is None or nanoseconds is None:
                    raise unreadable(path, f"has a kernel without a name, {_COUNT} or {_TIME}")
                yield name, launches, nanoseconds * 1e-9
    raise unreadable(path, f"has more than {MAX_ROWS} nodes")


def _number(value: object) -> float | None:
    """Return a finite number of at least 0; None for anything else."""
    return float(value) if isinstance(value, int | float) and 0 <= value < MAX_NUMBER else None
