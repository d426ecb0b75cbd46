"""The lock of a run folder: its writer holds it for as long as it lives, and a reader can ask whether one does."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

_TRIES, _PAUSE = 5, 0.05  # seconds between the tries: `is_free` holds the lock for a moment


def take(path: Path) -> int | None:
    """Take the lock; the file descriptor that holds it until it is closed. `None` where another process has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    for last in (*[False] * (_TRIES - 1), True):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if last:
                break
            time.sleep(_PAUSE)
        else:
            return descriptor
    os.close(descriptor)
    return None


def is_free(path: Path) -> bool | None:
    """Return whether no process of this host holds the lock; `None` where that is not known (no lock file).

    A process of another host may hold it all the same: many network file systems keep locks on the host that took them.
    The question takes a shared lock for a moment, since /proc/locks leaves out the processes of other containers.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    else:
        return True
    finally:
        os.close(descriptor)
