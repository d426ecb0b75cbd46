"""The few Linux calls that the standard library lacks, and what /proc tells of a process tree."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PAGE = os.sysconf("SC_PAGE_SIZE")


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "prctl")


def die_with_parent() -> None:
    """Asks the kernel to kill this process when its parent ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Makes this process the parent of descendants whose own parent ended, so that none can slip away."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def descendants(root: int) -> dict[int, str]:
    """The living descendants of `root` with the names of their programs."""
    children: dict[int, list[int]] = {}
    names: dict[int, str] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = Path("/proc", entry, "stat").read_text(errors="replace")
        except OSError:
            continue  # it ended meanwhile
        name, _, rest = stat.partition("(")[2].rpartition(")")
        state, parent = rest.split()[:2]
        if state != "Z":
            children.setdefault(int(parent), []).append(int(entry))
            names[int(entry)] = name
    found: dict[int, str] = {}
    front = [root]
    while front:
        for child in children.get(front.pop(), ()):
            found[child] = names[child]
            front.append(child)
    return found


def resident_bytes(pids: list[int]) -> int:
    """Memory resident in these processes, shared pages counted in each."""
    total = 0
    for pid in pids:
        try:
            total += int(Path("/proc", str(pid), "statm").read_text().split()[1]) * _PAGE
        except (OSError, IndexError):
            continue
    return total
