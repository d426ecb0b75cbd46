"""Processes below this one."""

from __future__ import annotations

import os

from hkbench.sandbox.tree import Tree


def living(root: int | None = None) -> dict[int, str]:
    """Names of the descendants that have not ended."""
    return {pid: process.name for pid, process in Tree(root or os.getpid()).living().items()}
