"""Python's cycle collector, out of the way while a large run is read."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the search for cycles within the context; also a decorator.

    A run is read into a tree of records that stay. The collector walks what is there again and again as it grows, and
    finds nothing: a fifth of the time of a report on 10,000 samples (benchmarks/harness.py).
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
