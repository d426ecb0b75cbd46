"""Stopping and continuing a whole tree: nobody runs in between, or the CPU time tells."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import struct
import threading
import time
from pathlib import Path

import pytest
from support.guard_alone import NO_WALLS, Alone, alive, guarded, own_world

from hkbench.evaluation.link import RunnerExited, TreeState
from hkbench.evaluation.side import RESTLESS_SECONDS
from hkbench.sandbox.cage import Cage
from hkbench.sandbox.limits import POLL_SECONDS
from hkbench.sandbox.proc import ScannedChildren, thread_state
from hkbench.sandbox.tree import Tree


def tell(sock: socket.socket) -> None:
    sock.sendall(b"%d\n" % os.getpid())


def spin(sock: socket.socket) -> None:
    tell(sock)
    while True:
        pass


def spin_in_threads_and_children(sock: socket.socket) -> None:
    for _ in range(2):
        if os.fork() == 0:
            os.setsid()
            spin(sock) if os.fork() == 0 else os._exit(0)
        os.wait()
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    threading.Thread(target=spin, args=(sock,), daemon=True).start()
    time.sleep(600)


def fork_and_fork(sock: socket.socket) -> None:
    """Never more than a few at a time, each with a short life."""
    tell(sock)
    while True:
        if os.fork() == 0:
            if os.fork() == 0:
                time.sleep(0.002)
            os._exit(0)
        os.wait()


def wake_by_timer(sock: socket.socket) -> None:
    """A timer of the kernel's that sends SIGCONT: who is stopped goes on."""
    signal.signal(signal.SIGCONT, lambda *_: None)
    event = struct.pack("=QiiQ40x", 0, signal.SIGCONT, 0, 0)  # struct sigevent, SIGEV_SIGNAL
    timer = ctypes.c_int()
    libc = ctypes.CDLL(None)
    assert libc.syscall(222, 1, event, ctypes.byref(timer)) == 0  # timer_create, CLOCK_MONOTONIC
    assert libc.syscall(223, timer.value, 0, struct.pack("=4q", 0, 20_000_000, 0, 20_000_000), None) == 0
    spin(sock)


def leave_first_thread(sock: socket.socket) -> None:
    """The process looks dead by its state, and a thread of it works on."""
    threading.Thread(target=spin, args=(sock,)).start()
    ctypes.CDLL(None).syscall(60, 0)  # exit: of this thread only


def clock(pid: int) -> float:
    return time.clock_gettime(~pid << 3 | 2)


def assert_still(frozen: TreeState, resumed: TreeState) -> None:
    """Nobody ran in between; the kernel may enter the last of a stopping thread's time a little later."""
    assert 0.0 <= resumed.cpu_seconds - frozen.cpu_seconds < RESTLESS_SECONDS


@pytest.mark.parametrize("walled", [False, True], ids=["plain", "namespaces"])
def test_nobody_runs_while_frozen_and_everybody_after(tmp_path: Path, walled: bool) -> None:
    cage: Cage = own_world(tmp_path) if walled else NO_WALLS
    with guarded(spin_in_threads_and_children, tmp_path, cage) as alone:
        said = 0
        while said < 3:
            said += alone.hear().count(b"\n")  # several may come as one
        time.sleep(3 * POLL_SECONDS)
        frozen = alone.link.freeze()
        assert (frozen.processes, frozen.threads, frozen.running) == (3, 5, 0)
        time.sleep(0.1)
        resumed = alone.link.resume()
        assert (resumed.processes, resumed.threads, resumed.running) == (3, 5, 0)
        assert frozen.cpu_seconds > 0.01
        assert_still(frozen, resumed)
        time.sleep(0.3)
        again = alone.link.freeze()
        assert again.cpu_seconds > resumed.cpu_seconds + RESTLESS_SECONDS
        assert alone.link.end().survivors == 0


def test_cpu_time_is_that_of_the_clock(tmp_path: Path) -> None:
    with guarded(spin, tmp_path) as alone:
        pid = alone.pid()
        time.sleep(0.1)
        frozen = alone.link.freeze()
        assert frozen.cpu_seconds == pytest.approx(clock(pid), abs=RESTLESS_SECONDS)
        assert thread_state(pid, pid) == "T"
        alone.link.resume()
        assert thread_state(pid, pid) != "T"


def test_a_tree_that_forks_all_the_time_is_frozen_too(tmp_path: Path) -> None:
    with guarded(fork_and_fork, tmp_path) as alone:
        alone.hear()
        time.sleep(0.1)
        first = before = 0.0
        for _ in range(10):
            frozen = alone.link.freeze()
            time.sleep(0.01)
            resumed = alone.link.resume()
            assert frozen.running == resumed.running == 0
            assert frozen.cpu_seconds >= before
            assert_still(frozen, resumed)
            first, before = first or frozen.cpu_seconds, resumed.cpu_seconds
            time.sleep(0.03)  # children that ended count in clock ticks
        assert before > first


def test_who_wakes_while_frozen_is_betrayed_by_the_cpu_time(tmp_path: Path) -> None:
    with guarded(wake_by_timer, tmp_path) as alone:
        pid = alone.pid()
        frozen = alone.link.freeze()
        ends = time.monotonic() + 20.0
        while clock(pid) <= frozen.cpu_seconds + 0.03:
            assert time.monotonic() < ends
            time.sleep(0.02)
        assert alone.link.resume().cpu_seconds > frozen.cpu_seconds + 0.02


def test_a_process_without_its_first_thread_is_stopped_and_killed(tmp_path: Path) -> None:
    with guarded(leave_first_thread, tmp_path) as alone:
        pid = alone.pid()
        ends = time.monotonic() + 20.0
        while thread_state(pid, pid) != "Z":  # its first thread tells before it leaves
            assert time.monotonic() < ends
            time.sleep(0.01)
        frozen = alone.link.freeze()
        assert (frozen.processes, frozen.running) == (1, 0)
        time.sleep(0.05)
        assert clock(pid) == pytest.approx(frozen.cpu_seconds, abs=RESTLESS_SECONDS)
        assert alone.link.end().survivors == 0
        assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("walled", [False, True], ids=["plain", "namespaces"])
def test_a_frozen_tree_is_killed(tmp_path: Path, walled: bool) -> None:
    with guarded(spin, tmp_path, own_world(tmp_path) if walled else NO_WALLS) as alone:
        alone.hear()
        alone.link.freeze()
        began = time.monotonic()
        end = alone.link.end()
        assert (end.reason, end.survivors, end.signal) == ("asked", 0, None)
        assert time.monotonic() - began < 5


def test_a_frozen_tree_dies_with_the_evaluator(tmp_path: Path) -> None:
    with guarded(spin, tmp_path) as alone:
        pid = alone.pid()
        alone.link.freeze()
        assert alive(pid)
    assert not alive(pid)


def signalled(alone: Alone, number: int, frozen: bool) -> None:
    pid = alone.pid()
    if frozen:
        alone.link.freeze()
    os.kill(pid, number)
    if frozen:
        with contextlib.suppress(RunnerExited):
            alone.link.resume()


@pytest.mark.parametrize("frozen", [False, True], ids=["running", "frozen"])
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGTERM])
def test_a_death_by_signal_is_told(tmp_path: Path, number: signal.Signals, frozen: bool) -> None:
    with guarded(spin, tmp_path) as alone:
        signalled(alone, number, frozen)
        end = alone.end_by_itself()
    assert (end.reason, end.signal, end.survivors) == ("ended", number.name, 0)


def test_a_frozen_runner_that_is_killed_from_elsewhere(tmp_path: Path) -> None:
    with guarded(spin, tmp_path) as alone:
        signalled(alone, signal.SIGKILL, frozen=True)
        end = alone.end_by_itself()
    assert (end.reason, end.survivors) == ("ended", 0)


def test_an_exit_code_is_told_at_once(tmp_path: Path) -> None:
    with guarded(lambda _: os._exit(7), tmp_path) as alone:
        end = alone.end_by_itself()
    assert (end.reason, end.exit_code) == ("ended", 7)


def burn(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


@pytest.mark.parametrize("waited", [True, False], ids=["waited for", "SIGCHLD ignored"])
def test_the_time_of_children_that_ended_counts(waited: bool) -> None:
    tree = Tree(os.getpid())
    before = tree.cpu_seconds()
    pid = os.fork()
    if pid == 0:
        if not waited:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        if os.fork() == 0:
            burn(0.3)
            os._exit(0)
        with contextlib.suppress(ChildProcessError):
            os.wait()
        signal.pause()
    until = time.monotonic() + 20
    while len(tree.living()) > 1 or time.monotonic() < until - 19.7:
        tree.cpu_seconds()
        time.sleep(0.01)
        assert time.monotonic() < until
    seconds = tree.cpu_seconds() - before
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert 0.25 < seconds < 0.5
    assert tree.cpu_seconds() - before < 0.5


def test_both_ways_to_list_children_agree() -> None:
    tree = Tree(os.getpid())
    pid = os.fork()
    if pid == 0:
        os.fork()
        signal.pause()
    while len(tree.living()) < 2:
        time.sleep(0.001)
    quick = tree.living()
    tree._children = ScannedChildren(0)
    slow = tree.living()
    tree.signal(signal.SIGKILL)
    os.waitpid(pid, 0)
    assert set(quick) == set(slow) and pid in quick
