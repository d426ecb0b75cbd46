"""The cage around one runner: an init process, and below it the runner with every layer of confinement put on.

guard ─ init ─ runner ─ whatever the runner starts. With namespaces the init is process 1 of its own world: when it
ends, the kernel kills everybody in it. It is not the runner itself because process 1 ignores the signals that it does
not handle, so that an abort() would not end it.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hkbench.sandbox import landlock, linux, namespaces, seccomp
from hkbench.sandbox.environment import is_gpu

REFUSED = 71  #: exit code of a runner that could not be confined as asked, and did not start
NAMESPACES = "namespaces"
SHARED_PROCESSES = "namespaces, processes shared"  #: without process numbers of their own
LANDLOCK = "landlock"
SECCOMP = "seccomp"


@dataclass(frozen=True)
class Cage:
    """What one runner may touch. `layers` are those that `survey` found to work, in its words ("landlock 7")."""

    readable: tuple[str, ...]  #: files and folders that may be read and executed
    writable: tuple[str, ...]  #: files, folders and devices that may be written; the private folder first
    layers: tuple[str, ...]
    named_pipes: bool = False  #: may be made; ncu and the process that it profiles find each other by them

    def has(self, layer: str) -> bool:
        return any(item.replace(",", " ").split()[0] == layer for item in self.layers)

    @property
    def own_processes(self) -> bool:
        return self.has(NAMESPACES) and SHARED_PROCESSES not in self.layers


@dataclass(frozen=True)
class Spawned:
    pid: int  #: the init: child of the caller, ancestor of all that the runner starts
    status_fd: int  #: gives the runner's wait status as decimal text when it has ended, then end of file
    #: With `stops`, before that, a line whenever the last thread of the runner's process has stopped: perf_counter_ns


def spawn(cage: Cage, prepare: Callable[[], None], target: Callable[[], None], stops: bool = False) -> Spawned:
    """Start `target` in the cage. `prepare` runs before it in the same process, not yet confined.

    With `stops` it is told when the runner's process was stopped, see `Spawned`.

    A runner that cannot be confined as asked says why on its standard error and ends with `REFUSED`.

    Raises:
        OSError: no process could be made.
    """
    status_fd, report_fd = os.pipe()
    uid, gid = os.geteuid(), os.getegid()
    sys.stdout.flush()
    sys.stderr.flush()
    failure = ""
    try:
        pid = namespaces.fork(cage.own_processes) if cage.has(NAMESPACES) else os.fork()
    except OSError as error:
        failure = f"the layer namespaces: {error.strerror}"
        pid = os.fork()
    if pid == 0:
        try:
            os.close(status_fd)
            _init(cage, prepare, target, report_fd, (uid, gid), failure, stops)
        except BaseException:  # noqa: BLE001 - the end of a process: nobody above could handle it
            traceback.print_exc()
        finally:
            os._exit(REFUSED)
    os.close(report_fd)
    return Spawned(pid, status_fd)


def confine(cage: Cage) -> None:
    """Confine this process for good, by the layers that need no process of their own: Landlock and seccomp.

    Raises:
        OSError: a layer that works here cannot be put on.
    """
    alone = replace(cage, layers=tuple(layer for layer in cage.layers if not layer.startswith(NAMESPACES)))
    failure = _confine(alone)
    if failure:
        raise OSError(failure)


def _init(
    cage: Cage,
    prepare: Callable[[], None],
    target: Callable[[], None],
    report_fd: int,
    owner: tuple[int, int],
    failure: str,
    stops: bool,
) -> None:
    linux.die_with_parent()
    _leave_if_alone(report_fd)
    if cage.has(NAMESPACES) and not failure:
        try:
            linux.set_dumpable(True)  # else the files to be written would not be its own
            namespaces.map_user(*owner)
            namespaces.enter_root(cage.readable, cage.writable, cage.own_processes)
        except OSError as error:
            failure = f"the layer namespaces: {error.strerror or error}"
    # Off before the runner exists, so that it cannot look into the init at any time.
    linux.set_dumpable(False)
    runner = os.fork()
    if runner == 0:
        os.close(report_fd)
        _runner(cage, prepare, target, failure)
    linux.no_new_privileges()
    linux.drop_capabilities()
    linux.die_with_parent()  # the kernel forgets this request when privileges change
    os.dup2(report_fd, 3)
    os.closerange(4, max(int(name) for name in os.listdir("/proc/self/fd")) + 1)
    _reap_until(runner, 3, stops)


def _leave_if_alone(report_fd: int) -> None:
    """End the process if its parent died before it asked to die with it: then nobody reads the pipe."""
    poll = select.poll()
    poll.register(report_fd, select.POLLERR)
    if any(event & select.POLLERR for _, event in poll.poll(0)):
        os._exit(REFUSED)


def _reap_until(runner: int, report_fd: int, stops: bool) -> None:
    """Wait for the runner, and for the orphans that the kernel hands to an init; then report and end.

    The kernel tells a parent that a process was stopped once its last thread has been (signal(7), waitpid(2)).
    """
    while True:
        pid, status = os.waitpid(-1, os.WUNTRACED if stops else 0)
        if pid != runner:
            continue
        stopped = os.WIFSTOPPED(status)
        with contextlib.suppress(BrokenPipeError):
            os.write(report_fd, b"%d\n" % time.perf_counter_ns() if stopped else str(status).encode())
        if not stopped:
            os._exit(0)


def _runner(cage: Cage, prepare: Callable[[], None], target: Callable[[], None], failure: str) -> None:
    status = 70
    try:
        linux.die_with_parent()
        linux.set_dumpable(True)
        _prepare(prepare, failure)
        failure = failure or _confine(cage)
        if failure:
            print(f"hkbench: the runner was not started: {failure}", file=sys.stderr)  # noqa: T201
            status = REFUSED
        else:
            target()
            status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - the end of a process: nobody above could handle it
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status & 0xFF)


def _prepare(prepare: Callable[[], None], failure: str) -> None:
    try:
        prepare()
    except OSError:
        if not failure:  # else a folder may be missing in a root that is half built
            raise


def _confine(cage: Cage) -> str:
    """Put the layers on this process; what went wrong, or nothing."""
    layer = "capabilities"
    try:
        if cage.has(NAMESPACES):
            layer = NAMESPACES
            namespaces.lock_proc()
        linux.no_new_privileges()
        linux.drop_capabilities()
        linux.die_with_parent()
        if cage.has(LANDLOCK):
            layer = LANDLOCK
            private = ("/tmp", "/var/tmp", "/dev/shm") if cage.has(NAMESPACES) else ()  # noqa: S108
            # CUDA writes to /proc/self as it starts, also in a process that the runner started (ncu does that). Without
            # process numbers of its own there are other people's processes in /proc: then the runner alone may.
            own = "/proc" if cage.own_processes else str(Path("/proc/self").resolve())
            landlock.restrict(cage.readable, (*cage.writable, *private, own))
        if cage.has(SECCOMP):
            layer = SECCOMP
            # Drivers and their profilers may set timers, for all that is known of them.
            timers = any(map(is_gpu, cage.writable))
            seccomp.install(sockets=cage.has(NAMESPACES), pipes=cage.named_pipes, timers=timers)
    except OSError as error:
        return f"the layer {layer}: {error.strerror or error}"
    return ""
