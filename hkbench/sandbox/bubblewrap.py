"""Bubblewrap around the whole fork server of the runners, where this user may make no namespaces but bwrap may.

It gives the runners a network, IPC and a host name of their own. Files, processes and system calls stay the business of
Landlock and seccomp: the private folders are made later, and the guards need the machine's process numbers.
"""

from __future__ import annotations

import shutil

NAME = "bubblewrap"


def prefix() -> tuple[str, ...] | None:
    """What to put before a command; `None` where bubblewrap is not installed."""
    found = shutil.which("bwrap")
    if found is None:
        return None
    return (
        found, "--unshare-net", "--unshare-ipc", "--unshare-uts", "--die-with-parent",
        "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--",
    )  # fmt: skip
