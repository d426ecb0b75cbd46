"""Several devices side by side: the engine with channels and slots as they are, and judges that only keep time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.run_folder import ISOLATED, correct, incorrect

from hkbench.engine.channel import Channel
from hkbench.engine.completion import Completion
from hkbench.engine.evaluator import LocalEvaluator
from hkbench.engine.guards import RunnersOnDemand
from hkbench.engine.slots import DeviceSlot
from hkbench.engine.workers import EvaluationSockets, chosen_devices
from hkbench.errors import DeviceUnavailable
from hkbench.evaluation import frames
from hkbench.evaluation.job import EvaluateJob
from hkbench.records import (
    BackendName,
    DeviceFacts,
    DeviceKind,
    EvaluationSettings,
    FailureKind,
    Problem,
    SizeSet,
    SlotTimes,
    Stage,
)

PROBLEM = Problem(number=1, name="1_A", level=1, path=Path("1_A"), source="", sha256="0" * 64)


class Room(LocalEvaluator):
    """The engine with `devices` devices. Its judges notice who builds and who measures at the same time."""

    def __init__(self, devices: int, builds: int, hung: str = "") -> None:
        super().__init__(DeviceKind.CUDA, EvaluationSettings(evaluations_per_gpu=1), SizeSet.FULL, builds)
        self.devices = tuple(DeviceFacts(kind=DeviceKind.CUDA, index=i, name="a GPU") for i in range(devices))
        self.isolation = ISOLATED
        self._preparation = cast(Any, SimpleNamespace(note=lambda _folder: None))
        self._share()
        self._completion = Completion(self.device, self._slots, cast(Any, None))
        self._measuring = cast(Any, SimpleNamespace(measure=self._door, leave=lambda _slot: None))
        self.building: set[str] = set()
        self.measuring: dict[int, str] = {}
        self.had: dict[int, list[str]] = {}  #: who measured on a device, in order
        self.most_builds = self.most_measurements = 0
        self.all_build, self.all_measure = asyncio.Event(), asyncio.Event()
        self.go_on = asyncio.Event()
        self._builds_at_once, self._hung = builds, hung
        self._judges_at_work: set[asyncio.Task[None]] = set()

    async def _start(self, job: EvaluateJob) -> tuple[Channel, RunnersOnDemand, EvaluationSockets]:
        ours, theirs = socket.socketpair()
        self._begin(self._load(theirs, Path(job.code).stem))
        return (
            await Channel.open(ours),
            cast(RunnersOnDemand, SimpleNamespace(close=lambda: None)),
            EvaluationSockets((), ()),
        )

    def _door(self, slot: DeviceSlot, _ends: list[int]) -> socket.socket:
        ours, theirs = socket.socketpair()
        self._begin(self._measures(theirs, slot.device))
        return ours

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._judges_at_work.add(task)
        task.add_done_callback(self._judges_at_work.discard)

    async def _load(self, sock: socket.socket, name: str) -> None:
        async with await Channel.open(sock) as channel:
            await channel.send(frames.Entered(stage=Stage.LOAD))
            self.building.add(name)
            self.most_builds = max(self.most_builds, len(self.building))
            if len(self.building) == self._builds_at_once:
                self.all_build.set()
            await self.all_build.wait()
            self.building.remove(name)
            await channel.send(frames.Ready())

    async def _measures(self, sock: socket.socket, index: int) -> None:
        async with await Channel.open(sock) as channel:
            asked = await channel.receive()
            assert isinstance(asked, frames.Evaluate)
            name = Path(asked.job.code).stem
            assert index not in self.measuring
            self.measuring[index] = name
            self.had.setdefault(index, []).append(name)
            self.most_measurements = max(self.most_measurements, len(self.measuring))
            if len(self.measuring) == len(self.devices):
                self.all_measure.set()
            if self._hung and name.startswith(self._hung):
                await self.go_on.wait()
            del self.measuring[index]
            await channel.send(frames.Judged(verdict=correct("1_A", 1.5)))

    async def require(self, backend: BackendName) -> None:
        """Nothing is built, so no compiler is needed."""

    async def turns(self, name: str, folder: Path) -> SlotTimes:
        code = folder / f"{name}.py"
        code.touch()
        found = await self.evaluate(PROBLEM, code, folder / name, "cuda")
        assert found.turns is not None
        return found.turns


async def test_each_device_has_one_measurement_and_builds_go_on_beside(tmp_path: Path) -> None:
    room = Room(devices=4, builds=3, hung="c")  # all of them measure until they are told to go on
    waiting = asyncio.gather(*(room.turns(f"c{number}", tmp_path) for number in range(24)))
    await asyncio.wait_for(room.all_measure.wait(), timeout=30)
    room.go_on.set()
    turns = await asyncio.wait_for(waiting, timeout=30)
    assert (room.most_builds, room.most_measurements) == (3, 4)
    assert {turn.device for turn in turns} == {0, 1, 2, 3}
    for device in range(4):
        held = sorted((turn.lent or 0.0, turn.returned or 0.0) for turn in turns if turn.device == device)
        assert all(before[1] <= after[0] for before, after in pairwise(held))
    for turn in turns:
        assert turn.lent is not None and turn.returned is not None
        assert turn.asked <= turn.building <= turn.loaded <= turn.lent <= turn.returned


async def test_a_hung_kernel_stops_nothing_but_its_own_device(tmp_path: Path) -> None:
    room = Room(devices=2, builds=4, hung="stuck")
    stuck = asyncio.create_task(room.turns("stuck", tmp_path))
    await asyncio.wait_for(asyncio.gather(*(room.turns(f"c{number}", tmp_path) for number in range(12))), timeout=30)
    assert not stuck.done()
    assert list(room.measuring.values()) == ["stuck"]
    (device,) = room.measuring
    assert room.had[device][-1] == "stuck"
    room.go_on.set()
    assert (await stuck).device == device


async def test_few_builds_keep_many_devices_busy(tmp_path: Path) -> None:
    room = Room(devices=8, builds=1, hung="c")  # all of them measure until they are told to go on
    waiting = [asyncio.create_task(room.turns(f"c{number}", tmp_path)) for number in range(8)]
    await asyncio.wait_for(room.all_measure.wait(), timeout=30)
    assert room.most_builds == 1
    room.go_on.set()
    assert {turn.device for turn in await asyncio.gather(*waiting)} == set(range(8))


def test_chosen_devices_are_those_that_are_lent() -> None:
    found = [DeviceFacts(kind=DeviceKind.CUDA, index=i, name=f"GPU {i}") for i in range(4)]
    assert [facts.index for facts in chosen_devices(found, (3, 1))] == [3, 1]


def test_a_device_that_is_not_there_is_unavailable_and_the_others_are_named() -> None:
    found = [DeviceFacts(kind=DeviceKind.CUDA, index=i, name=f"GPU {i}") for i in range(2)]
    with pytest.raises(DeviceUnavailable, match=r"device 7.*0 \(GPU 0\), 1 \(GPU 1\)"):
        chosen_devices(found, (1, 7))


class Crowded(Room):
    """A device on which an evaluation, or its candidate, ends by an error while others use it too."""

    def __init__(self, error: str | None) -> None:
        super().__init__(devices=1, builds=1)
        self._settings = EvaluationSettings(evaluations_per_gpu=2)
        self._error = error
        self.alone: list[bool] = []

    async def _measures(self, sock: socket.socket, index: int) -> None:
        async with await Channel.open(sock) as channel:
            asked = await channel.receive()
            assert isinstance(asked, frames.Evaluate)
            self.alone.append(asked.job.alone)
            if asked.job.alone:
                await channel.send(frames.Judged(verdict=correct("1_A", 1.5)))
            elif self._error is not None:
                await channel.send(frames.Failed(error=self._error, message="no memory"))
            else:
                await channel.send(frames.Judged(verdict=incorrect("1_A", FailureKind.OUT_OF_MEMORY, Stage.RUN)))


@pytest.mark.parametrize("error", [None, "DeviceMemoryLacking"], ids=["of the candidate's", "of the evaluator's"])
async def test_what_lacks_memory_beside_others_is_made_once_more_alone(tmp_path: Path, error: str | None) -> None:
    room = Crowded(error)
    turns = await asyncio.wait_for(room.turns("c", tmp_path), timeout=30)
    assert room.alone == [False, True]
    assert turns.device == 0


async def test_a_device_that_needs_a_reset_gets_no_second_try(tmp_path: Path) -> None:
    room = Crowded("DeviceUnavailable")
    with pytest.raises(DeviceUnavailable):
        await asyncio.wait_for(room.turns("c", tmp_path), timeout=30)
    assert room.alone == [False]
