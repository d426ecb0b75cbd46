"""A runner that stops itself: since when it stands still is the kernel's word, and it goes on when it is let go on."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.guard_alone import NO_WALLS, guarded, own_world

from hkbench.protocol import wire
from hkbench.runner.clock import stop_self
from hkbench.sandbox.cage import Cage

BUSY_SECONDS = 0.05


def call_and_stop(sock: socket.socket) -> None:
    """Wait for a word, work for some time, tell of it and stop; then tell that it goes on."""
    sock.sendall(b"ready")
    wire.receive(sock)
    ends = time.perf_counter() + BUSY_SECONDS
    while time.perf_counter() < ends:
        pass
    sock.sendall(b"%f" % time.perf_counter())
    stop_self()
    sock.sendall(b"on")
    signal.pause()


def call_with_a_child(sock: socket.socket) -> None:
    """Stop as above, while a process of its own works on."""
    child = os.fork()
    if child == 0:
        while True:
            pass
    call_and_stop(sock)


def stop_late(sock: socket.socket) -> None:
    """Say that it has ended, and stop long after."""
    sock.sendall(b"ready")
    wire.receive(sock)
    sock.sendall(b"%f" % time.perf_counter())
    time.sleep(0.2)
    stop_self()
    sock.sendall(b"on")
    signal.pause()


@pytest.mark.parametrize("walled", [False, True], ids=["plain", "namespaces"])
def test_a_call_ends_when_its_runner_has_stopped(tmp_path: Path, walled: bool) -> None:
    cage: Cage = own_world(tmp_path) if walled else NO_WALLS
    with guarded(call_and_stop, tmp_path, cage) as alone:
        assert alone.hear() == b"ready"
        alone.link.freeze()
        begun = alone.link.let_go().at
        told = float(alone.hear())
        time.sleep(0.1)  # the evaluator is late, and nothing of that counts
        stood = alone.link.freeze()
        assert begun + BUSY_SECONDS <= told <= stood.at < told + 0.09
        assert stood.running == 0
        alone.link.resume()
        assert alone.hear() == b"on"


@pytest.mark.parametrize("target", [stop_late, call_with_a_child], ids=["later than it says", "not alone"])
def test_who_does_not_stop_is_stopped_and_that_is_its_end(tmp_path: Path, target: Callable[..., None]) -> None:
    with guarded(target, tmp_path) as alone:
        assert alone.hear() == b"ready"
        alone.link.freeze()
        alone.link.let_go()
        told = float(alone.hear())
        time.sleep(0.05)
        asked = time.perf_counter()
        stood = alone.link.freeze()
        assert told < asked <= stood.at and stood.running == 0
        alone.link.resume()
        assert alone.hear() == b"on"  # also where it comes to stop itself only now
