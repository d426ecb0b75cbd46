"""Run one compiler command on text that nobody trusts: bounded in time, memory, output and file size."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

OUTPUT_LIMIT = 4 << 20  #: bytes kept of what a tool prints; the first error comes first
_FILE_BLOCKS = 8 << 20  #: the largest file a tool may write, in 512-byte blocks: 4 GiB
_MEMORY_SHARE = 0.8
_STOP_POLL = 0.2  #: seconds between two looks at `stop`
_PACKAGE = Path(__file__).resolve().parents[1]
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class ToolResult:
    """What one command came to; `returncode` is None when it did not end in time."""

    returncode: int | None
    output: str  #: stdout and stderr together
    seconds: float


def run_tool(
    command: Sequence[str],
    folder: Path,
    timeout: float,
    stop: threading.Event | None = None,
    prefix: Sequence[str] = (),
) -> ToolResult:
    """Run `command` in `folder`, which also holds its temporary files; never raise for a failing tool.

    The tool gets a session of its own, no standard input, no core dump and an environment of a few harmless
    variables (no key ever reaches a compiler). When `timeout` seconds are over, or this process is interrupted, the
    whole session's process group is killed: a compiler driver runs its passes as children. `stop` ends it early.
    `prefix` are words to put before the command, of a cage for it (sandbox/command.py).
    """
    scratch = folder / "tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= {"TMPDIR": str(scratch), "LC_ALL": "C", "PYTHONPATH": str(_PACKAGE.parent)}
    memory = int(_MEMORY_SHARE * psutil.virtual_memory().total) >> 10  # of each of the tool's processes, in KiB
    limits = f'ulimit -c 0; ulimit -f {_FILE_BLOCKS}; ulimit -v {memory}; exec "$@"'
    limited = ["/bin/sh", "-c", limits, "sh", *prefix, *command]
    begin = time.monotonic()
    with tempfile.TemporaryFile(dir=scratch) as printed:
        process = subprocess.Popen(
            limited,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            returncode = _wait(process, begin + timeout, stop)
        finally:
            _kill_group(process)
        printed.seek(0)
        output = printed.read(OUTPUT_LIMIT).decode("utf-8", "replace")
    return ToolResult(returncode, output, time.monotonic() - begin)


def _wait(process: subprocess.Popen[bytes], deadline: float, stop: threading.Event | None) -> int | None:
    """Return the process's return code, or None when the deadline (monotonic) or `stop` came first."""
    while True:
        left = deadline - time.monotonic()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=max(0.0, min(left, _STOP_POLL)))
        if left <= 0 or (stop is not None and stop.is_set()):
            return None


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End whatever is left of the tool's process group, also when the tool itself has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
