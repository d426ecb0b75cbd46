"""Who builds and who measures, and in which order."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack

import pytest

from hkbench.device_kinds import KINDS
from hkbench.engine.slots import BuildSlots, Devices, DeviceSlot, HostShare, host_share
from hkbench.records import DeviceKind


class Stage:
    """Tasks that enter a slot, note it, and stay until they are let go."""

    def __init__(self, slots: BuildSlots) -> None:
        self.slots = slots
        self.inside: list[str] = []
        self.entered: list[str] = []
        self._leave: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def start(self, name: str) -> asyncio.Task[None]:
        """Names that begin with "m" measure, the others build; with "f" before all who wait."""
        self._leave[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._stay(name))
        await self.settle()
        return self._tasks[name]

    async def leave(self, *names: str) -> None:
        for name in names:
            self._leave[name].set()
            await self._tasks[name]
        await self.settle()

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    def _build(self, name: str) -> AbstractAsyncContextManager[None]:
        return self.slots.build(first=name[0] == "f")

    async def _stay(self, name: str) -> None:
        slot: AbstractAsyncContextManager[None] = self.slots.measure() if name[0] == "m" else self._build(name)
        async with slot:
            self.inside.append(name)
            self.entered.append(name)
            try:
                await self._leave[name].wait()
            finally:
                self.inside.remove(name)


async def test_builds_run_side_by_side_up_to_the_count() -> None:
    stage = Stage(BuildSlots(2, HostShare.ALL))
    for name in ("a", "b", "c"):
        await stage.start(name)
    assert stage.inside == ["a", "b"]
    await stage.leave("a")
    assert stage.inside == ["b", "c"]
    await stage.leave("b", "c")


async def test_a_measurement_excludes_builds_on_a_cpu() -> None:
    stage = Stage(BuildSlots(4, HostShare.ALL))
    await stage.start("a")
    await stage.start("m1")
    await stage.start("m2")
    await stage.start("b")
    assert stage.inside == ["a"]
    await stage.leave("a")
    assert stage.inside == ["m1"]
    await stage.leave("m1")
    assert stage.inside == ["m2"]
    await stage.leave("m2")
    assert stage.inside == ["b"]
    await stage.leave("b")
    assert stage.entered == ["a", "m1", "m2", "b"]


async def test_a_measurement_does_not_wait_for_builds_on_a_gpu() -> None:
    stage = Stage(BuildSlots(1, HostShare.NONE))
    await stage.start("a")
    await stage.start("m")
    assert stage.inside == ["a", "m"]
    await stage.leave("a", "m")


async def test_a_measurement_that_times_nothing_is_one_of_the_builds() -> None:
    stage = Stage(BuildSlots(2, HostShare.ONE_SLOT))
    for name in ("m1", "a", "m2", "b"):
        await stage.start(name)
    assert stage.inside == ["m1", "a"]
    await stage.leave("a")
    assert stage.inside == ["m1", "m2"]
    await stage.leave("m1", "m2", "b")


@pytest.mark.parametrize("first", ["m", "b"])
async def test_cancelling_one_that_waits_lets_the_next_in(first: str) -> None:
    stage = Stage(BuildSlots(1, HostShare.ALL))
    await stage.start("a")
    waiting = await stage.start(f"{first}1")
    await stage.start("c")
    waiting.cancel()
    await stage.settle()
    assert waiting.cancelled()
    await stage.leave("a")
    assert stage.inside == ["c"]
    await stage.leave("c")
    await stage.start("m9")
    assert stage.inside == ["m9"]
    await stage.leave("m9")


@pytest.mark.parametrize("kind", ["m", "b"])
async def test_cancelling_at_the_moment_of_admission_leaks_nothing(kind: str) -> None:
    stage = Stage(BuildSlots(1, HostShare.ALL))
    await stage.start("a")
    waiting = await stage.start(f"{kind}1")
    stage._leave["a"].set()
    await stage._tasks["a"]  # the turn is given now; the task that has it did not run yet
    waiting.cancel()
    await stage.settle()
    assert waiting.cancelled()
    for name in ("m2", "c"):
        await stage.start(name)
    assert stage.inside == ["m2"]
    await stage.leave("m2")
    assert stage.inside == ["c"]
    await stage.leave("c")


async def test_what_later_builds_gain_by_is_built_before_them() -> None:
    stage = Stage(BuildSlots(2, HostShare.ALL))
    for name in ("a", "b", "c", "m1", "first"):
        await stage.start(name)
    await stage.leave("a")
    assert stage.inside == ["b", "first"]
    await stage.leave("b")
    assert stage.inside == ["first", "c"]
    await stage.leave("first", "c")
    assert stage.inside == ["m1"]
    await stage.leave("m1")


async def test_cancelling_inside_gives_the_slot_back() -> None:
    stage = Stage(BuildSlots(1, HostShare.ALL))
    for kind in ("a", "m"):
        task = await stage.start(kind)
        task.cancel()
        await stage.settle()
    await stage.start("c")
    assert stage.inside == ["c"]
    await stage.leave("c")


async def test_a_device_is_lent_once() -> None:
    devices = Devices([0, 3])

    async def borrow() -> DeviceSlot:
        async with devices.one() as slot:
            return slot

    async with devices.one() as first:
        async with devices.one() as second:
            assert {first, second} == {DeviceSlot(0), DeviceSlot(3)}
            third, fourth = asyncio.create_task(borrow()), asyncio.create_task(borrow())
            await asyncio.sleep(0)
            assert not third.done()
            third.cancel()
        assert await fourth == second
    async with devices.one() as again, devices.one() as more:
        assert {again, more} == {DeviceSlot(0), DeviceSlot(3)}


async def test_a_device_that_several_share_is_lent_when_others_have_as_many() -> None:
    devices = Devices([0, 1], each=2)
    async with AsyncExitStack() as stack:
        lent = [await stack.enter_async_context(devices.one()) for _ in range(4)]
        assert lent == [DeviceSlot(0, 0), DeviceSlot(1, 0), DeviceSlot(0, 1), DeviceSlot(1, 1)]
    async with devices.one() as first, devices.one() as second:
        assert (first, second) == (DeviceSlot(0, 0), DeviceSlot(1, 0)), "their workers are warm"


def test_what_a_measurement_takes_of_the_host_follows_from_the_kind_of_device() -> None:
    share = {model.kind: host_share(model) for model in KINDS}
    assert share.pop(DeviceKind.CPU) is HostShare.ALL
    assert {share.pop(DeviceKind.CUDA), share.pop(DeviceKind.ROCM)} == {HostShare.NONE}
    assert set(share.values()) == {HostShare.ONE_SLOT}
