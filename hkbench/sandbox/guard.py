"""The guard: the parent of one runner. It caps output, watches memory, and leaves nobody alive behind it.

One guard a runner, forked by the fork server. The judge holds the other end of `control`: a byte asks for the end, a
closed socket (the judge died) means the same. The guard answers with one JSON line, a `GuardReport`, and exits.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hkbench.sandbox import linux

POLL_SECONDS = 0.1
KILL_SECONDS = 10.0
OUTPUT_HALF = 32 * 1024  #: bytes kept from each end of what the runner prints


@dataclass(frozen=True)
class Limits:
    """What a runner may use. Bytes and counts for its whole process tree, except `file_bytes` (each file)."""

    memory_bytes: int
    processes: int = 512
    file_bytes: int = 4 << 30
    open_files: int = 4096


class Output:
    """The first and the last bytes of a stream; what lies between is counted and dropped."""

    def __init__(self) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = OUTPUT_HALF - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[:-OUTPUT_HALF]

    def text(self) -> str:
        dropped = self.total - len(self._head) - len(self._tail)
        middle = f"\n[... {dropped} bytes left out ...]\n".encode() if dropped else b""
        return (bytes(self._head) + middle + bytes(self._tail)).decode(errors="replace")


def confine(limits: Limits, folder: str, environment: dict[str, str]) -> None:
    """Limits of this very process and what it starts, its private folder and its environment."""
    linux.die_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind, value in (
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
    ):
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    with contextlib.suppress(OSError):  # not all kernels let a process raise its own score
        Path("/proc/self/oom_score_adj").write_text("1000")
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)


class Guard:
    def __init__(self, control: socket.socket, limits: Limits, runner: int, output_fd: int) -> None:
        self._control = control
        self._limits = limits
        self._runner = runner
        self._output_fd = output_fd
        self._output = Output()
        self._status: int | None = None
        self._peak = 0

    def watch(self) -> None:
        """Until the judge asks for the end, the runner ends or passes a limit; then kills the tree and reports."""
        reason = self._wait()
        commands = sorted(set(linux.descendants(os.getpid()).values()))
        survivors = self._kill_all()
        self._drain()
        report = {
            "reason": reason,
            "status": self._status,
            "commands": commands,
            "survivors": survivors,
            "peak_bytes": self._peak,
            "output": self._output.text(),
            "output_bytes": self._output.total,
        }
        # As long as the judge lives it will read this, perhaps after work of its own; at its death the send fails.
        with contextlib.suppress(OSError):
            self._control.sendall(json.dumps(report).encode() + b"\n")

    def _wait(self) -> str:
        look = 0.0
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(self._output_fd, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select(max(0.0, look - time.monotonic())):
                    if key.fileobj is self._control:
                        return "asked"
                    if not self._read_output():
                        selector.unregister(self._output_fd)
                if time.monotonic() < look:
                    continue  # a runner that prints without a pause must not have /proc read for each block
                reason = self._passed_limit()
                if reason is not None:
                    return reason
                look = time.monotonic() + POLL_SECONDS

    def _passed_limit(self) -> str | None:
        self._reap()
        tree = linux.descendants(os.getpid())
        used = linux.resident_bytes(list(tree))
        self._peak = max(self._peak, used)
        if used > self._limits.memory_bytes:
            return "memory"
        if len(tree) > self._limits.processes:
            return "processes"
        # What it leaves behind may hold the channel open, and would let the judge wait for nothing.
        return "ended" if self._status is not None else None

    def _read_output(self) -> bool:
        data = os.read(self._output_fd, 1 << 16)
        self._output.add(data)
        return bool(data)

    def _drain(self) -> None:
        os.set_blocking(self._output_fd, False)
        with contextlib.suppress(BlockingIOError):
            while self._read_output():
                pass

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._runner:
                self._status = status

    def _kill_all(self) -> int:
        """Kills every descendant; orphans become the guard's own children, so nobody leaves the tree."""
        self._reap()  # a status that is there already is the runner's own end, not ours
        deadline = time.monotonic() + KILL_SECONDS
        while tree := linux.descendants(os.getpid()):
            for pid in tree:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._reap()
            if time.monotonic() > deadline:
                return len(tree)
            time.sleep(0.002)
        self._reap()
        return 0


def run(
    control: socket.socket,
    target: Callable[[], None],
    limits: Limits,
    folder: str,
    environment: dict[str, str],
    inherited: list[Any],
) -> None:
    """Forks the runner (`target`) and guards it. `inherited` are sockets and files that only the runner keeps."""
    linux.adopt_orphans()
    read_end, write_end = os.pipe()
    runner = os.fork()
    if runner == 0:
        os.close(read_end)
        control.close()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(write_end, 1)
        os.dup2(write_end, 2)
        os.close(write_end)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
        confine(limits, folder, environment)
        target()
        os._exit(0)
    os.close(write_end)
    for item in inherited:
        item.close() if hasattr(item, "close") else os.close(item)
    Guard(control, limits, runner, read_end).watch()
