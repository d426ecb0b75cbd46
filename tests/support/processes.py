"""Processes below this one."""

from __future__ import annotations

import os
import time

from hkbench.sandbox.tree import Tree

#: Process ids of servers that all tests of a session share (in_process.py): no test has left them behind.
SHARED: set[int] = set()


def living(root: int | None = None) -> dict[int, str]:
    """Return the names of the descendants that have not ended, without those in `SHARED`."""
    found = Tree(root or os.getpid()).living()
    return {pid: process.name for pid, process in found.items() if pid not in SHARED}


def left_behind(seconds: float = 10.0) -> dict[int, str]:
    """Return the names of the descendants that are still there after so long: what is killed takes a moment to end."""
    ends = time.monotonic() + seconds
    while (found := living()) and time.monotonic() < ends:
        time.sleep(0.05)
    return found
