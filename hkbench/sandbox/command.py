"""One command in a cage: `python -m hkbench.sandbox.command CAGE COMMAND...`.

For compilers that the harness itself starts on a candidate's text. CAGE is the cage as JSON (`words`). Folder, input
and output are the caller's; so is the exit status, a signal's number plus 128 as in a shell. The caller bounds the
time: when this process is killed, the kernel takes the whole cage with it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from hkbench.sandbox.cage import Cage, spawn

BUBBLEWRAP = "bubblewrap"  #: the name of its layer
NOT_STARTED = 127  #: as of a shell that does not find a command


def bubblewrap() -> tuple[str, ...] | None:
    """Return what to put before the command of the runners' fork server; `None` where bubblewrap is not installed.

    It serves where this user may make no namespaces but bwrap may, and gives the runners a network, IPC and a host name
    of their own. Files, processes and system calls stay the business of Landlock and seccomp: the private folders are
    made later, and the guards need the machine's process numbers.
    """
    found = shutil.which("bwrap")
    if found is None:
        return None
    return (
        found, "--unshare-net", "--unshare-ipc", "--unshare-uts", "--die-with-parent",
        "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--",
    )  # fmt: skip


def words(cage: Cage, prefix: Sequence[str] = ()) -> tuple[str, ...]:
    """Return what to put before a command. `prefix`: see `bubblewrap`."""
    return (*prefix, sys.executable, "-m", "hkbench.sandbox.command", json.dumps(asdict(cage)))


def main(arguments: Sequence[str]) -> int:
    described, *command = arguments
    folder = Path.cwd()  # to be entered anew: the cage has a root of its own

    def run() -> None:
        os.chdir(folder)
        try:
            os.execvp(command[0], command)  # noqa: S606 - no shell: the words are the command
        except OSError as error:
            print(f"{command[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201
            sys.exit(NOT_STARTED)

    spawned = spawn(Cage(**json.loads(described)), lambda: None, run)
    with os.fdopen(spawned.status_fd) as report:
        status = report.read()
    os.waitpid(spawned.pid, 0)
    if not status:  # the init was killed from outside
        return 128 + 9
    code = os.waitstatus_to_exitcode(int(status))
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
