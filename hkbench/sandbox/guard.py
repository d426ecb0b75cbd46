"""The guard: the parent of one runner. It holds limits, freezes and samples on request, and leaves nobody alive.

One guard a runner, forked by the fork server. The evaluator holds the other end of `control` and sends single bytes:

- `S` stops the whole tree, `C` continues it, and so does `G`, after which the runner will stop itself. The answer
  counts processes and threads, those that were `running` although they should be stopped, and the CPU seconds of the
  tree so far, and says since when it stands still. `C` and `G` count before they continue: the CPU time must be what
  `S` answered, or somebody did not keep still.
- `P` begins to sample whose code runs, `Q` ends it and answers the samples by mapped object.
- `R` and three 64-bit numbers (`READ`), a process as it knows itself, an address and a size in bytes, reads memory
  of the tree. The bytes follow the line, unless that has an `error`.
- `K`, and a closed socket (the evaluator died), end the tree.

Each answer is one line of JSON. The last line is the report, the only one with a `reason`: "asked", "ended" (by
itself) or the limit that was passed. It also comes unasked.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hkbench.sandbox import linux
from hkbench.sandbox.cage import Cage, Spawned, spawn
from hkbench.sandbox.limits import Limits as Limits, Meter
from hkbench.sandbox.proc import newest_task
from hkbench.sandbox.sampler import Sampler
from hkbench.sandbox.tree import Tree, cpu_clock

KILL_SECONDS = 10.0
OUTPUT_HALF = 32 * 1024  #: bytes kept from each end of what the runner prints
PIPE_BYTES = 1 << 20  #: more than a pipe can hold when nobody writes any more
LATE_SECONDS = 0.002
KEPT_THREADS = 256  #: of the runner's, whose files in /proc stay open between two stops
STOOD_SECONDS = 0.02  #: for a runner to stop itself, and for the init to tell of it
AWAKE_SECONDS = 0.004  #: of a sampled call, in which the guard does not sleep
READ = struct.Struct("<QQQ")
#: How often a sampler looks for new processes where the machine has no new task; for threads it looks at each tick.
PROCESSES_SECONDS = 0.02


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
    """Confine this very process and what it starts: limits, private folder and environment."""
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
    def __init__(
        self,
        control: socket.socket,
        limits: Limits,
        spawned: Spawned,
        output_fd: int,
        folder: str,
        given: frozenset[int] = frozenset(),
    ) -> None:
        self._control = control
        self._limits = limits
        self._init = spawned.pid
        self._status_fd = spawned.status_fd
        self._output_fd = output_fd
        self._output = Output()
        self._tree = Tree(os.getpid(), [spawned.pid], KEPT_THREADS)
        self._meter = Meter(limits, self._tree, folder, given)
        self._sampler: Sampler | None = None
        self._late: Sampler | None = None  # has ended, and still waits for threads that it asked to stop
        self._sampled: list[int] = []
        self._status_text = b""
        self._ended = False
        self._frozen = self._stops_itself = False
        self._went_on = 0.0  # by time.perf_counter
        self._stood: float | None = None  # when the runner's process was stopped, since it went on last
        self._commands = {b"S": self._freeze, b"C": self._resume, b"P": self._sample_begin, b"Q": self._sample_end}
        self._commands |= {b"W": self._queued, b"G": self._let_go}

    def watch(self) -> None:
        """Watch the runner until it ends, passes a limit or is to end; then kill the tree and report."""
        reason = self._wait()
        commands = sorted({process.name for process in self._tree.living().values()})
        survivors = self._kill_all()
        self._drain()
        self._answer(
            {
                "reason": reason,
                "status": int(self._status_text) if self._status_text else None,
                "commands": commands,
                "survivors": survivors,
                "peak_bytes": self._meter.peak_bytes,
                "output": self._output.text(),
                "output_bytes": self._output.total,
            }
        )

    def _answer(self, fields: dict[str, Any]) -> None:
        # As long as the evaluator lives it will read this, perhaps after work of its own; at its death the send fails.
        with contextlib.suppress(OSError):
            self._control.sendall(json.dumps(fields).encode() + b"\n")

    def _wait(self) -> str:
        look = processes = 0.0
        newest = b""
        with selectors.DefaultSelector() as selector:
            for source in (self._control, self._output_fd, self._status_fd):
                selector.register(source, selectors.EVENT_READ)
            while True:
                tick = look if self._sampler is None else self._next_look(self._sampler)
                if self._late is not None:
                    self._late.release()
                    self._late = self._late if self._late.busy else None
                    tick = min(tick, time.monotonic() + LATE_SECONDS)
                for key, _ in selector.select(max(0.0, min(look, tick) - time.monotonic())):
                    if key.fileobj is self._control:
                        if not self._obey():
                            return "asked"
                    elif key.fileobj == self._status_fd:
                        self._read_statuses()  # a command may have read what was there
                    elif not self._read_output():
                        selector.unregister(self._output_fd)
                # What a runner leaves behind may hold the channel open, and would let the evaluator wait for nothing.
                if self._ended:
                    return "ended"
                if self._output.total > self._limits.output_bytes:
                    return "output"
                now = time.monotonic()
                if self._sampler is not None and now >= self._sampler.next_tick:
                    if now >= processes or newest != newest_task():  # one may live for less than a call
                        newest = newest_task()
                        self._sampled, processes = list(self._tree.living()), now + PROCESSES_SECONDS
                    self._sampler.tick(self._sampled)
                if now >= look:  # a runner that prints without a pause must not have /proc read for each block
                    self._reap()
                    reason, pause = self._meter.passed()
                    if reason is not None:
                        return reason
                    look = time.monotonic() + pause

    def _obey(self) -> bool:
        """Do what the evaluator asks for; False: the end."""
        try:
            asked = self._control.recv(1)
        except OSError:
            return False
        if asked == b"R":
            return self._read()
        command = self._commands.get(asked)
        if command is None:
            return False
        self._answer(command())
        return True

    def _read(self) -> bool:
        """Answer with memory of a process of the tree; False: the evaluator is gone."""
        try:
            asked = self._control.recv(READ.size, socket.MSG_WAITALL)
        except OSError:
            return False
        if len(asked) != READ.size:
            return False
        number, address, size = READ.unpack(asked)
        try:
            pid = next((pid for pid in self._tree.living() if linux.number_inside(pid) == number), None)
            if pid is None:
                raise ProcessLookupError(f"no process of the tree has the number {number}")
            data = linux.read_memory(pid, address, size)
        except (OSError, MemoryError, OverflowError) as error:
            self._answer({"error": str(error)[:200] or type(error).__name__})
            return True
        self._answer({"bytes": size})
        with contextlib.suppress(OSError):
            self._control.sendall(data)
        return True

    def _freeze(self) -> dict[str, Any]:
        if self._sampler is not None:
            self._sampler.settle()
        self._frozen = True
        if self._stops_itself:
            self._await_stop()
        frozen = self._tree.freeze()
        if self._stops_itself and frozen.alone and not frozen.running:  # the word on the runner's process is enough
            self._await_stop()
            frozen = replace(frozen, at=frozen.at if self._stood is None else min(frozen.at, self._stood))
        return asdict(frozen)

    def _await_stop(self) -> None:
        """Wait until the init tells that the runner's process has been stopped."""
        ends = time.monotonic() + STOOD_SECONDS
        while self._stood is None and not self._ended and self._has_status(max(0.0, ends - time.monotonic())):
            self._read_status()

    def _has_status(self, seconds: float) -> bool:
        poll = select.poll()  # which, unlike select, takes any number of a file
        poll.register(self._status_fd, select.POLLIN)
        return bool(poll.poll(seconds * 1e3))

    def _let_go(self) -> dict[str, Any]:
        state = self._resume(stops_itself=True)
        if self._sampler is not None:
            self._sampler.await_tick()  # one that is overdue would see the call begin, each time
        return state

    def _resume(self, stops_itself: bool = False) -> dict[str, Any]:
        self._read_statuses()
        self._stood, self._frozen, self._stops_itself = None, False, stops_itself
        self._went_on = time.perf_counter()
        return asdict(self._tree.resume())

    def _queued(self) -> dict[str, Any]:
        found = self._tree.queued()
        threads = None if found is None else [[tid, *times] for tid, times in found.items()]
        return {"threads": threads, "guard_seconds": time.process_time() + (cpu_clock(self._init) or 0.0)}

    def _next_look(self, sampler: Sampler) -> float:
        """Return until when the guard may sleep while a call is sampled, by time.monotonic.

        Where the runner's threads have all processors, a guard that sleeps until a tick gets none back in time, and
        sees the beginnings of short calls alone. One that never sleeps leaves a processor less to a long call: of
        OpenMP's threads, which wait for each other after each loop, it makes ten times of it.
        """
        return 0.0 if time.perf_counter() - self._went_on < AWAKE_SECONDS else sampler.next_tick

    def _sample_begin(self) -> dict[str, Any]:
        self._sampled = list(self._tree.living())
        self._sampler = Sampler(self._sampled)
        return {"sampling": True}

    def _sample_end(self) -> dict[str, Any]:
        sampler, self._sampler = self._sampler, None
        if sampler is None:
            return Sampler().result()
        if not sampler.settle():
            self._late = sampler
        return sampler.result()

    def _read_statuses(self) -> None:
        while not self._ended and self._has_status(0.0):
            self._read_status()

    def _read_status(self) -> None:
        part = os.read(self._status_fd, 1 << 10)
        *stops, self._status_text = (self._status_text + part).split(b"\n")
        since = [at for at in (int(stop) / 1e9 for stop in stops) if at > self._went_on]  # an init may be late
        if since and self._stood is None:
            self._stood = since[0]
        self._ended = not part
        if stops and not self._frozen and not self._stops_itself:
            self._tree.signal(signal.SIGCONT)  # it was stopped before it came to stop itself, and does so now

    def _read_output(self) -> int:
        data = os.read(self._output_fd, 1 << 16)
        self._output.add(data)
        return len(data)

    def _drain(self) -> None:
        os.set_blocking(self._output_fd, False)
        left = PIPE_BYTES
        with contextlib.suppress(BlockingIOError):
            while left > 0 and (size := self._read_output()):
                left -= size

    def _reap(self) -> None:
        if (self._sampler is not None and self._sampler.busy) or self._late is not None:
            return  # waiting for any child would take the sampler's stops
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    def _kill_all(self) -> int:
        """Kill every descendant; orphans become the guard's own children, so nobody leaves the tree."""
        if self._sampler is not None:
            self._sampler.settle()
            self._sampler = None
        # A status that is there already is the runner's own end, not ours.
        os.set_blocking(self._status_fd, False)
        with contextlib.suppress(BlockingIOError):
            self._read_status()
        # The first process of a namespace takes all others with it; without one, they fork on until they are stopped.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._init, signal.SIGKILL)
        self._reap()
        deadline = time.monotonic() + KILL_SECONDS
        while self._tree.signal(signal.SIGKILL) or self._tree.anyone():
            self._reap()
            if time.monotonic() > deadline:
                return len(self._tree.living())
            time.sleep(0.001)
        self._reap()
        return 0


def run(
    control: socket.socket,
    target: Callable[[], None],
    limits: Limits,
    folder: str,
    environment: dict[str, str],
    inherited: list[Any],
    cage: Cage,
) -> None:
    """Start the runner (`target`) in its cage and guards it. `inherited`: sockets and files that only it keeps."""
    linux.adopt_orphans()
    read_end, write_end = os.pipe()

    def prepare() -> None:
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

    spawned = spawn(cage, prepare, target, stops=True)
    os.close(write_end)
    with contextlib.suppress(OSError):  # a right that few have; among thousands of runners' processes it is needed
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    given = frozenset(os.fstat(item).st_ino for item in inherited if isinstance(item, int))
    for item in inherited:
        item.close() if hasattr(item, "close") else os.close(item)
    Guard(control, limits, spawned, read_end, folder, given).watch()
