"""An evaluator that stays with a device, whose baselines' runner is gone before it has it."""

from __future__ import annotations

import os
import socket

from hkbench.evaluation import frames
from hkbench.evaluation.job import FILES, SOCKETS
from hkbench.evaluation.link import RunnerLink
from hkbench.evaluation.worker import DeviceWorker
from hkbench.protocol import wire
from hkbench.records import DeviceFacts, DeviceKind


def test_whoever_wants_to_measure_is_told() -> None:
    (channel, runner), (control, guard), (engine, theirs), (door, entrance) = (socket.socketpair() for _ in range(4))
    for gone in (runner, guard):
        gone.close()
    files = [os.memfd_create(f"file {number}") for number in range(FILES)]
    sockets = [socket.socket() for _ in range(SOCKETS)]
    frames.send(entrance, frames.TakeEvaluation())
    wire.send_descriptors(entrance, [theirs.fileno(), *(sock.fileno() for sock in sockets), *files])
    DeviceWorker(DeviceFacts(kind=DeviceKind.CPU, index=0, name="a CPU"), RunnerLink(channel, control)).serve(door)
    said = frames.receive(engine)
    assert isinstance(said, frames.Failed) and said.error == "WorkerLost"
    assert "did not take a CPU" in said.message and "hkbench doctor" in said.message
    for sock in (channel, control, engine, theirs, door, entrance, *sockets):
        sock.close()
    for file in files:
        os.close(file)
