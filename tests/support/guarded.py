"""Runner targets for the tests of fork server and guard: `serve` does what the evaluator's end of the channel names."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def serve(channel: socket.socket) -> None:
    """Read one JSON request, does it, and answer with one JSON line."""
    request = json.loads(channel.recv(1 << 16))
    answer = globals()[f"do_{request['do']}"](request)
    channel.sendall(json.dumps(answer).encode() + b"\n")
    time.sleep(60)


def do_look(_request: dict[str, Any]) -> dict[str, Any]:
    """Return what this process sees of itself."""
    return {
        "environment": dict(os.environ),
        "initial": Path("/proc/self/environ").read_bytes().decode(errors="replace"),
        "folder": str(Path.cwd()),
        "core": list(resource.getrlimit(resource.RLIMIT_CORE)),
        "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "file_bytes": resource.getrlimit(resource.RLIMIT_FSIZE)[0],
        "stdin": sys.stdin.read(),
        "fds": sorted(_open_files()),
        "modules": sorted(sys.modules),
    }


def _open_files() -> Iterator[str]:
    for entry in list(Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(FileNotFoundError):  # the descriptor that the listing itself used
            yield str(entry.readlink())


def do_escape(_request: dict[str, Any]) -> dict[str, Any]:
    """Leave a grandchild in a session of its own that ignores what can be ignored."""
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            os.write(write_end, str(os.getpid()).encode())
            while True:
                time.sleep(1)
        os._exit(0)
    pid = int(os.read(read_end, 32))
    os.wait()
    return {"grandchild": pid, "runner": os.getpid(), "guard": os.getppid()}


def do_eat(request: dict[str, Any]) -> dict[str, Any]:
    """Take memory until somebody objects."""
    kept = []
    while True:
        kept.append(bytearray(b"x" * request["step"]))
        time.sleep(0.01)


def do_multiply(request: dict[str, Any]) -> dict[str, Any]:
    for _ in range(request["count"]):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    time.sleep(60)
    return {}


def do_print(request: dict[str, Any]) -> dict[str, Any]:
    sys.stdout.write("first words\n")
    for _ in range(request["mebibytes"]):
        sys.stdout.write("x" * (1 << 20))
    sys.stdout.write("\nlast words\n")
    sys.stdout.flush()
    os.system("echo from a child; echo and its errors >&2")
    return {"printed": True}


def do_leave(request: dict[str, Any]) -> dict[str, Any]:
    """Ends, while a child keeps every descriptor open."""
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
    os._exit(request["code"])


def do_segfault(_request: dict[str, Any]) -> dict[str, Any]:
    ctypes.string_at(0)
    return {}


def do_raise(_request: dict[str, Any]) -> dict[str, Any]:
    raise LookupError("nobody catches this")
