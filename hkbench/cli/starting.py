"""What a command is at before it has anything to show: on a terminal a line that goes, elsewhere one that stays."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from rich.console import Console


@contextmanager
def doing(what: str, display: str | None) -> Iterator[None]:
    """Say `what` while the block runs, as the display of a batch is chosen; those for programs stay as they are."""
    if display in ("json", "log"):
        yield
    elif display != "plain" and sys.stdout.isatty():
        with Console().status(what):
            yield
    else:
        print(f"{datetime.now().astimezone():%H:%M:%S} {what}", flush=True)
        yield
