"""A command that sees other files in the place of some: `python -m hkbench.sandbox.overlay PLACES COMMAND...`.

PLACES is a file with a JSON object, paths -> the files that are to be seen there. Only the command and what it starts
see them, in a mount namespace of their own; who may make none but with a user namespace gets that too.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hkbench.sandbox import namespaces


def words(places: Path) -> tuple[str, ...]:
    """Return what to put before a command."""
    return (sys.executable, "-m", "hkbench.sandbox.overlay", str(places))


def main(arguments: Sequence[str]) -> None:
    """Enter the namespace and become the command.

    Raises:
        OSError: the kernel refused a namespace or a mount.
    """
    places, *command = arguments
    namespaces.overlay(json.loads(Path(places).read_text()))
    os.execv(command[0], command)  # noqa: S606 - no shell: the words are the command


if __name__ == "__main__":
    main(sys.argv[1:])
