"""The device runtimes that this process has loaded: torch may bring its own, and a second copy knows nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

RUNTIMES = {"libcudart": "cuda", "libamdhip64": "hip"}  #: the runtime libraries by the start of their file names


def loaded_runtimes() -> Iterator[tuple[str, str]]:
    """Yield (kind, path) of each loaded runtime; kind is "cuda" or "hip"."""
    if torch.version.cuda is None and torch.version.hip is None:
        return
    lines = Path("/proc/self/maps").read_text().splitlines()
    for path in dict.fromkeys(line.split(maxsplit=5)[5] for line in lines if "/" in line):
        for start, kind in RUNTIMES.items():
            if Path(path).name.startswith(start):
                yield kind, path
