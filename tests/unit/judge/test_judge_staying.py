"""A judge that stays with a device, whose baselines' runner is gone before it has it."""

from __future__ import annotations

import os
import socket

from hkbench.judge.job import FILES, SOCKETS
from hkbench.judge.link import RunnerLink
from hkbench.judge.worker import Staying
from hkbench.records import DeviceFacts, DeviceKind
from hkbench.runner import wire


def test_whoever_wants_to_measure_is_told() -> None:
    (channel, runner), (control, guard), (engine, theirs), (door, entrance) = (socket.socketpair() for _ in range(4))
    for gone in (runner, guard):
        gone.close()
    files = [os.memfd_create(f"file {number}") for number in range(FILES)]
    sockets = [socket.socket() for _ in range(SOCKETS)]
    wire.send(entrance, {})
    wire.send_descriptors(entrance, [theirs.fileno(), *(sock.fileno() for sock in sockets), *files])
    Staying(DeviceFacts(kind=DeviceKind.CPU, index=0, name="a CPU"), RunnerLink(channel, control)).serve(door)
    said = wire.receive(engine)
    assert said["error"] == "WorkerLost"
    assert "did not take a CPU" in said["message"] and "hkbench doctor" in said["message"]
    for sock in (channel, control, engine, theirs, door, entrance, *sockets):
        sock.close()
    for file in files:
        os.close(file)
