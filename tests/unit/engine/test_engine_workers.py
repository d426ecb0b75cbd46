"""Who measures on which device: real doors, and judges that only say what they were given."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from hkbench.engine.slots import DeviceSlot
from hkbench.engine.workers import DeviceLocks, DeviceWorkers
from hkbench.errors import WorkerLost
from hkbench.evaluation import frames
from hkbench.evaluation.job import ENDS
from hkbench.protocol import wire
from hkbench.records import DeviceFacts, DeviceKind
from hkbench.sandbox.client import ForkServer, ForkServerLost

LOCKS = DeviceLocks()


class Server:
    """In place of a fork server: a worker is a thread, which sends its number and what it can read by its last end."""

    def __init__(self) -> None:
        self.facts: list[DeviceFacts] = []
        self.shared: list[str | None] = []  #: folders of locks
        self.folders: list[Path] = []  #: of the baselines' runners
        self.short_lived = False
        self.lost = False
        self._threads: list[threading.Thread] = []

    def fork(self, fds: list[int], guard: dict[str, str] | None = None) -> None:
        if self.lost:
            raise ForkServerLost("it died")
        if guard is not None:
            self.folders.append(Path(guard["folder"]))
            return
        assert len(fds) == 3, "the door, and a runner's channel and control"
        control = socket.socket(fileno=os.dup(fds[0]))
        thread = threading.Thread(target=self._stay, args=(control, len(self._threads)))
        self._threads.append(thread)
        thread.start()

    @property
    def judges(self) -> int:
        return len(self._threads)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(10.0)
            assert not thread.is_alive()

    def _stay(self, control: socket.socket, number: int) -> None:
        with control:
            asked = frames.receive(control)
            assert isinstance(asked, frames.ServeDevice)
            self.facts.append(asked.facts)
            self.shared.append(asked.shared)
            if self.short_lived:
                return
            while True:
                try:
                    assert isinstance(frames.receive(control), frames.TakeEvaluation)
                except wire.PeerClosed:
                    return
                channel, *ends = wire.receive_descriptors(control, 1 + ENDS)
                with socket.socket(fileno=channel) as engine:
                    wire.send(engine, {"judge": number, "read": os.pread(ends[-1], 10, 0).decode()})
                for end in ends:
                    os.close(end)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.join()
    LOCKS.close()


@pytest.fixture
def ends() -> Iterator[list[int]]:
    files = [os.memfd_create(f"end {number}") for number in range(ENDS)]
    os.write(files[-1], b"loaded")
    yield files
    for file in files:
        os.close(file)


def judges_of(server: Server, *kinds: DeviceKind) -> DeviceWorkers:
    facts = [DeviceFacts(kind=kind, index=index, name=f"device {index}") for index, kind in enumerate(kinds)]
    servers = (cast(ForkServer, server), cast(ForkServer, server))
    return DeviceWorkers(servers, lambda folder: {"folder": str(folder)}, facts, LOCKS)


def measured(judges: DeviceWorkers, index: int, ends: Sequence[int], number: int = 0) -> wire.Message:
    with judges.measure(DeviceSlot(index, number), ends) as channel:
        return wire.receive(channel)


def test_each_gpu_keeps_its_evaluator_from_the_start_on(server: Server, ends: list[int]) -> None:
    judges = judges_of(server, DeviceKind.CUDA, DeviceKind.CUDA)
    judges.start()
    assert server.judges == 2
    said = [measured(judges, index, ends) for index in (0, 1, 1, 0)]
    assert [message["judge"] for message in said] == [0, 1, 1, 0]
    assert {message["read"] for message in said} == {"loaded"}
    assert sorted(facts.index for facts in server.facts) == [0, 1]
    assert len(server.folders) == 2 and all(folder.is_dir() for folder in server.folders)
    judges.close()
    assert not any(folder.exists() for folder in server.folders)


def test_those_of_one_gpu_share_its_locks(server: Server, ends: list[int]) -> None:
    judges = judges_of(server, DeviceKind.CUDA, DeviceKind.CUDA)
    judges.start(2)
    assert server.judges == 4
    said = [measured(judges, index, ends, number) for index, number in ((0, 0), (0, 1), (1, 0), (1, 1))]
    assert len({message["judge"] for message in said}) == 4
    by_device = {(facts.index, shared) for facts, shared in zip(server.facts, server.shared, strict=True)}
    assert len(by_device) == 2 and all(shared is not None and Path(shared).is_dir() for _, shared in by_device)
    judges.close()
    LOCKS.close()
    assert not any(shared is not None and Path(shared).exists() for _, shared in by_device)


def test_one_that_is_left_is_followed_by_another(server: Server, ends: list[int]) -> None:
    judges = judges_of(server, DeviceKind.ROCM)
    assert measured(judges, 0, ends)["judge"] == 0
    judges.leave(DeviceSlot(0))
    assert [measured(judges, 0, ends)["judge"] for _ in range(2)] == [1, 1]
    judges.close()


def test_on_a_cpu_each_measurement_has_its_own(server: Server, ends: list[int]) -> None:
    judges = judges_of(server, DeviceKind.CPU)
    judges.start()
    assert server.judges == 0, "it would be there for nothing"
    assert [measured(judges, 0, ends)["judge"] for _ in range(2)] == [0, 1]
    server.join()
    assert measured(judges, 0, ends)["judge"] == 2
    assert [folder.exists() for folder in server.folders] == [False, False, True], "else a batch would fill the disk"
    judges.close()


def test_one_that_died_while_it_had_nothing_to_do_is_replaced(server: Server, ends: list[int]) -> None:
    judges = judges_of(server, DeviceKind.CUDA)
    server.short_lived = True
    judges.start()
    server.join()
    server.short_lived = False
    assert measured(judges, 0, ends)["judge"] == 1
    judges.close()


def test_without_a_server_there_is_no_evaluator(server: Server, ends: list[int]) -> None:
    server.lost = True
    with pytest.raises(WorkerLost, match="start the command again"):
        judges_of(server, DeviceKind.CUDA).measure(DeviceSlot(0), ends)
