"""Elements that are read as soon as a call is done, over ordinary memory."""

from __future__ import annotations

import ctypes
import secrets
from collections.abc import Callable

import pytest
import torch

from hkbench.evaluation import spot_check
from hkbench.evaluation.spot_check import ELEMENTS, CopyStream, SpotCheck
from hkbench.protocol.gate import DONE, MAX_DIMS, PLACES, SIZE
from hkbench.protocol.places import Place

THERE = 1 << 40  #: where the runner's memory lies in the runner


class HostStream(CopyStream):
    """Copies at once; what comes behind a wait, once the word is there."""

    def __init__(self) -> None:
        self._queued: list[tuple[int, int, int]] = []
        self._until: tuple[int, int] | None = None

    @staticmethod
    def memory(*shape: int, dtype: torch.dtype) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype)

    def wait(self, address: int, value: int) -> None:
        self._until = address, value

    def fetch(self, to: int, address: int, size: int, count: int = 1, distance: int | None = None) -> None:
        self._queued += [(to + size * i, address + (distance or size) * i, size) for i in range(count)]
        self.synchronize()

    def synchronize(self) -> None:
        if self._until is not None and ctypes.c_int32.from_address(self._until[0]).value < self._until[1]:
            return
        for to, address, size in self._queued:
            ctypes.memmove(to, address, size)
        self._queued = []


class Runner:
    """A page and an output of a runner, and the evaluator's look at them."""

    def __init__(self, memory: torch.Tensor, seconds: float = 1.0, elements: int | None = None) -> None:
        self.page = torch.zeros(SIZE, dtype=torch.uint8)
        self.memory = memory
        self.output = output = memory if elements is None else memory[:elements]
        self.stream = HostStream()
        place = Place(dtype="float32", shape=[*output.shape], strides=[*output.stride()], offset=0, span=output.numel())
        self.check = SpotCheck({"out": place}, self.stream)
        self.seconds = seconds

    def begin(self, number: int = 1) -> None:
        self.check.begin(number, self.page.data_ptr(), self.seconds, self._find)

    def done(self, number: int = 1, address: int = THERE, strides: tuple[int, ...] | None = None) -> None:
        strides = (*(strides or self.output.stride()), *[0] * (MAX_DIMS - self.output.dim()))
        self.page[PLACES : PLACES + 8 * (1 + MAX_DIMS)].view(torch.int64).copy_(torch.tensor([address, *strides]))
        self.page[DONE : DONE + 4].view(torch.int32).fill_(number)
        self.stream.synchronize()

    def _find(self, address: int, size: int) -> int | None:
        within = address >= THERE and address + size <= THERE + self.memory.untyped_storage().nbytes()
        return self.memory.data_ptr() + address - THERE if within else None


Shape = Callable[[], torch.Tensor]


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(64, 48),
        lambda: torch.randn(48, 64).t(),
        lambda: torch.randn(64, 96)[:, ::2],
        lambda: torch.randn(1, 48).expand(64, 48),
        lambda: torch.tensor(2.5),
    ],
    ids=["plain", "transposed", "every second", "expanded", "one element"],
)
def test_what_is_finished_is_found_the_same_however_it_lies(make: Shape) -> None:
    runner = Runner(make())
    runner.begin()
    assert runner.check.look() is not None
    runner.done()
    assert runner.check.look() is None
    assert runner.check.changed({"out": runner.output.contiguous()}) is None


def test_what_is_written_after_the_look_is_found() -> None:
    runner = Runner(torch.zeros(64, 64))
    runner.begin()
    runner.done()
    runner.check.look()
    runner.output.fill_(1.0)
    changed = runner.check.changed({"out": runner.output.clone()})
    assert changed is not None and changed.startswith("out[")


@pytest.mark.parametrize("shape", [(1000,), (3, 7, 1111), (64,)])
def test_a_part_that_is_written_late_is_found_in_every_call(shape: tuple[int, ...]) -> None:
    runner = Runner(torch.zeros(shape))
    for number in range(1, 101):
        runner.output.zero_()
        runner.begin(number)
        runner.done(number)
        runner.check.look()
        count = runner.output.numel()
        part = -(-count // ELEMENTS)
        start = secrets.randbelow(count - part + 1)
        runner.output.view(-1)[start : start + part] = 1.0
        changed = runner.check.changed({"out": runner.output.clone()})
        assert changed is not None
        index = [int(number) for number in changed.removeprefix("out[").removesuffix("]").split(",")]
        assert runner.output[tuple(index)] == 1.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(50, 20).t(),
        lambda: torch.zeros(8, 30, 7, 5).permute(0, 3, 1, 2),
        lambda: torch.zeros(16, 1, 64).transpose(0, 2),
    ],
)
def test_in_whatever_order_the_dimensions_lie_a_part_is_found_in_every_call(make: Shape) -> None:
    runner = Runner(make())
    for number in range(1, 51):
        runner.output.zero_()
        runner.begin(number)
        runner.done(number)
        runner.check.look()
        lies = torch.as_strided(runner.output, (runner.output.numel(),), (1,))
        part = -(-lies.numel() // ELEMENTS)
        start = secrets.randbelow(lies.numel() - part + 1)
        lies[start : start + part] = 1.0
        assert runner.check.changed({"out": runner.output.contiguous()}) is not None


def test_of_an_output_with_gaps_a_tenth_that_is_written_late_is_found_in_most_calls() -> None:
    found = 0
    for number in range(1, 101):
        runner = Runner(torch.zeros(50, 40)[:, ::2])
        runner.begin(number)
        runner.done(number)
        runner.check.look()
        runner.output[:, :2] = 1.0
        found += runner.check.changed({"out": runner.output.contiguous()}) is not None
    assert found > 90  # a line along the second dimension is enough


@pytest.mark.parametrize("strides", [(-8, 1), (1 << 62, 1), (1 << 62, -(1 << 62)), (0, 0), (1, -1)])
def test_strides_that_nobody_has_read_nothing_that_was_not_shown(strides: tuple[int, int]) -> None:
    runner = Runner(torch.zeros(64, 8))
    reads: list[tuple[int, int]] = []
    find = runner._find

    def noted(address: int, size: int) -> int | None:
        assert size > 0
        here = find(address, size)
        if here is not None:
            reads.append((address, size))
        return here

    runner.check.begin(1, runner.page.data_ptr(), 1.0, noted)
    runner.done(strides=strides)
    runner.check.look()
    assert all(address >= THERE and address + size <= THERE + runner.memory.nbytes for address, size in reads)


def test_elements_that_are_too_far_apart_for_one_copy_are_read_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spot_check, "MAX_DISTANCE", 4 * 40)
    runner = Runner(torch.zeros(50, 40)[:, ::2])
    runner.begin()
    runner.done()
    runner.check.look()
    assert any(len(read.elements) == 1 for read in runner.check._rows)
    assert runner.check.changed({"out": runner.output.contiguous()}) is None


def test_a_number_of_an_earlier_call_does_not_end_this_one() -> None:
    runner = Runner(torch.zeros(8))
    for number in (1, 2):
        runner.begin(number)
        assert runner.check.look() is not None
        runner.done(number)
        assert runner.check.look() is None
    other = Runner(torch.zeros(8))
    runner.page = other.page  # the other side's gate, whose numbers begin anew
    runner.begin(2)
    assert runner.check.look() is not None


def test_it_waits_asleep_for_a_long_call_and_gives_up_on_one_that_is_longer_than_expected() -> None:
    runner = Runner(torch.zeros(8), seconds=10.0)
    runner.begin()
    pause = runner.check.look()
    assert pause is not None and pause > 5.0
    short = Runner(torch.zeros(8), seconds=-1.0)
    short.begin()
    assert short.check.look() is None


def test_what_lies_where_it_lay_is_read_before_the_host_knows() -> None:
    runner = Runner(torch.zeros(8))
    runner.begin(1)
    runner.done(1)
    assert runner.check.changed({"out": runner.output.clone()}) is None
    runner.begin(2)
    runner.done(2)
    runner.output.fill_(1.0)
    assert runner.check.changed({"out": runner.output.clone()}) is not None


def test_what_lies_at_two_places_by_turns_is_read_before_the_host_knows() -> None:
    runner = Runner(torch.zeros(16), elements=8)
    for number in range(1, 9):
        first = number % 2 == 0
        output = runner.memory[:8] if first else runner.memory[8:]
        runner.begin(number)
        runner.done(number, address=THERE if first else THERE + 32)
        output.fill_(float(number))
        assert (runner.check.changed({"out": output.clone()}) is not None) == (number > 2)


@pytest.mark.parametrize(("places", "late"), [(1, False), (2, False), (4, False), (5, True)])
def test_who_goes_round_more_places_than_are_remembered_is_told_of(places: int, late: bool) -> None:
    runner = Runner(torch.zeros(8 * places), elements=8)
    for number in range(1, 21):
        runner.begin(number)
        runner.done(number, address=THERE + 32 * (number % places))
        runner.check.look()
        assert runner.check.changed({"out": torch.zeros(8)}) is None
    assert (runner.check.late(runner.page.data_ptr()) is not None) == late
    assert runner.check.late(0) is None, "of nobody else"


def test_what_lies_elsewhere_is_read_once_the_host_knows() -> None:
    runner = Runner(torch.zeros(16), elements=8)
    runner.begin(1)
    runner.done(1)
    runner.check.look()
    assert runner.check.changed({"out": runner.output.clone()}) is None
    runner.begin(2)
    runner.done(2, address=THERE + 32)
    runner.memory[:8] = 1.0
    runner.check.look()
    assert runner.check.changed({"out": runner.memory[8:].clone()}) is None
    runner.begin(3)
    runner.done(3, address=THERE + 16)
    assert runner.check.changed({"out": torch.full((8,), 2.0)}) is None  # nobody looked


def test_other_memory_at_the_same_address_is_read_anew_or_not_compared() -> None:
    runner = Runner(torch.zeros(64))
    runner.begin(1)
    runner.done(1)
    assert runner.check.changed({"out": runner.output.clone()}) is None
    for number, looks in ((2, True), (3, False)):
        runner.begin(number)  # reads where the output lay
        runner.memory = runner.output = torch.full((64,), float(number))  # as after torch.cuda.empty_cache()
        runner.done(number)
        if looks:
            runner.check.look()
            assert runner.check.changed({"out": torch.zeros(64)}) is not None  # what is there now was read
        else:
            assert runner.check.changed({"out": torch.zeros(64)}) is None


def test_memory_that_was_not_shown_is_not_read() -> None:
    runner = Runner(torch.zeros(8))
    runner.begin()
    runner.done(address=THERE + 64)
    runner.check.look()
    assert runner.check.changed({"out": torch.ones(8)}) is None


def test_outputs_without_elements_are_not_looked_at() -> None:
    runner = Runner(torch.zeros(0, 8))
    runner.begin()
    assert runner.check.look() is None
