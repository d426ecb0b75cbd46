"""A guard without fork server: forked from the test, its runner behind an init, by default without walls."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hkbench.evaluation.link import RunnerExited, RunnerLink
from hkbench.evaluation.runner_end import RunnerEnd
from hkbench.sandbox import guard
from hkbench.sandbox.cage import NAMESPACES, Cage

NO_WALLS = Cage((), (), ())


def own_world(folder: Path) -> Cage:
    """Process numbers of its own: the init's end is everybody's."""
    places = ("/usr", "/lib", "/lib64", "/bin", "/etc", sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]))
    readable = tuple(place for place in places if Path(place).exists())
    return Cage(readable, (str(folder), "/dev/null", "/dev/zero", "/dev/urandom"), (NAMESPACES,))


@dataclass
class Alone:
    """A link to the guard, and the runner's own socket to the test."""

    link: RunnerLink
    said: socket.socket
    guard: int

    def hear(self) -> bytes:
        self.said.settimeout(60)
        return self.said.recv(1 << 16)

    def pid(self) -> int:
        return int(self.hear())

    def end_by_itself(self, seconds: float = 60.0) -> RunnerEnd:
        """Wait for the report that nobody asked for."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(RunnerExited):
                self.link.sample_end()
                time.sleep(0.02)
                continue
            return self.link.end()
        raise AssertionError("the guard did not end its runner")


@contextlib.contextmanager
def guarded(
    target: Callable[[socket.socket], None], folder: Path, cage: Cage = NO_WALLS, **limits: float
) -> Iterator[Alone]:
    """Run `target` with its end of a socket."""
    channel, theirs = socket.socketpair()
    control, guards = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()  # as below a fork server: what ends the test's group must not end the guard before its tree
            channel.close()
            control.close()
            held = guard.Limits(**({"memory_bytes": 1 << 40} | limits))  # type: ignore[arg-type]
            environment = dict(os.environ)
            guard.run(guards, lambda: target(theirs), held, str(folder), environment, [theirs], cage)
        except BaseException:  # noqa: BLE001 - the end of a process
            traceback.print_exc()
        finally:
            os._exit(0)
    theirs.close()
    guards.close()
    said = channel.dup()
    with channel, control, said:
        yield Alone(RunnerLink(channel, control), said, pid)
    os.waitpid(pid, 0)


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
