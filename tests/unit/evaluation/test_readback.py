"""What is kept of a GPU's clocks around a measurement, and what is said of them."""

from __future__ import annotations

import pytest

from hkbench.drivers.base import NotRead
from hkbench.evaluation.readback import LOOK_SECONDS, MAX_LOOKS, ClockLog, clock_warnings
from hkbench.records import ClockState, DeviceFacts, DeviceKind, DevicePlace, Readback

GPU = DeviceFacts(kind=DeviceKind.CUDA, index=0, name="a GPU", uuid="GPU-aa", pci="0000:1b:00")


class Gpu:
    """A GPU whose clock and energy a test sets; a look takes a millisecond."""

    def __init__(self) -> None:
        self.now, self.state, self.closed, self.looks = 0.0, ClockState(clock_mhz=345.0, energy_joules=100.0), 0, 0
        self.gone = False

    def opened(self, kind: DeviceKind) -> Gpu:
        assert kind is DeviceKind.CUDA
        return self

    def clocks(self, place: DevicePlace) -> ClockState:
        assert place.uuid == "GPU-aa" and place.pci == "0000:1b:00"
        if self.gone:
            raise NotRead("it has fallen off the bus")
        self.now += 1e-3
        self.looks += 1
        return self.state

    def close(self) -> None:
        self.closed += 1


def log_of(gpu: Gpu) -> ClockLog:
    return ClockLog(GPU, gpu.opened, lambda: gpu.now)


def at(*clocks: float, throttled: tuple[str, ...] = ()) -> Readback:
    during = tuple(ClockState(clock_mhz=clock, throttled=throttled) for clock in clocks)
    idle = ClockState(clock_mhz=345.0)
    return Readback(before=idle, during=during, after=idle)


def test_readings_before_during_and_after() -> None:
    gpu = Gpu()
    log = log_of(gpu)
    gpu.state = ClockState(clock_mhz=1980.0, energy_joules=130.0)
    for _ in range(10):
        gpu.now += LOOK_SECONDS / 2
        log.during()
    gpu.state = ClockState(clock_mhz=1700.0, energy_joules=150.0)
    found = log.end(pairs=25)
    assert found is not None and gpu.closed == 1
    assert found.before.clock_mhz == 345.0 and found.after.clock_mhz == 1700.0
    assert 3 <= len(found.during) <= 6, "not after each pair"
    assert {one.clock_mhz for one in found.during} == {1980.0}
    assert found.joules_per_pair == 2.0


def test_a_long_measurement_keeps_some() -> None:
    gpu = Gpu()
    log = log_of(gpu)
    for _ in range(5 * MAX_LOOKS):
        gpu.now += 2 * LOOK_SECONDS
        log.during()
    found = log.end(pairs=1)
    assert found is not None and MAX_LOOKS / 2 <= len(found.during) <= MAX_LOOKS


def test_a_driver_that_does_not_say() -> None:
    def absent(kind: DeviceKind) -> Gpu:
        raise NotRead("no library")

    assert ClockLog(GPU, absent).end(1) is None
    gpu = Gpu()
    log = log_of(gpu)
    gpu.gone, gpu.now = True, 10.0
    log.during()
    assert log.end(1) is None and gpu.closed == 1


def test_a_cpu_is_not_asked() -> None:
    gpu = Gpu()
    log = ClockLog(GPU.model_copy(update={"kind": DeviceKind.CPU}), gpu.opened)
    log.during()
    assert log.end(1) is None and gpu.looks == 0


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, ()),
        (at(), ()),
        (at(1980.0, 1950.0, 1980.0), ()),
        (at(1980.0, 1400.0), ("between 1400 and 1980 MHz",)),
        (at(1980.0, 1980.0, throttled=("power cap",)), ("held down during the measurement: power cap",)),
    ],
)
def test_what_is_said_of_them(found: Readback | None, words: tuple[str, ...]) -> None:
    warnings = clock_warnings(found)
    assert len(warnings) == len(words)
    assert all(word in warning for word, warning in zip(words, warnings, strict=True))
