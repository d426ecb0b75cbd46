"""Start one command beside the runner: in its cage, under its limits, with what it printed as the answer.

For a profiler, which has to be the parent of the process that it looks at. Whoever asks bounds the time: the guard
ends this process with all that it started.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from typing import IO

from hkbench.protocol.messages import Command, CommandEnded

SHOWN_HALF = 16 * 1024  #: bytes kept from each end of what the command prints


def run_command(request: Command) -> CommandEnded:
    """Run the command in its folder, with its environment added. The exit status of a signal is below 0.

    Raises:
        OSError: it could not be started.
    """
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            request.command,
            cwd=request.folder,
            env={**os.environ, **request.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return CommandEnded(returncode=done.returncode, output=_ends(output))


def _ends(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(0)
    text = output.read(SHOWN_HALF)
    if size > 2 * SHOWN_HALF:
        text += f"\n[... {size - 2 * SHOWN_HALF} bytes left out ...]\n".encode()
    output.seek(max(SHOWN_HALF, size - SHOWN_HALF))
    return (text + output.read(SHOWN_HALF)).decode(errors="replace")
