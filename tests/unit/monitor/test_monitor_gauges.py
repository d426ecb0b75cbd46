"""When devices are read, and when they are not."""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Callable
from pathlib import Path

from support.run_folder import RunFolder

from hkbench.drivers.base import NotRead, Reading
from hkbench.monitor.gauges import Gauges, read_once
from hkbench.monitor.live import Watch
from hkbench.records import ClockState, DeviceKind, DevicePlace
from hkbench.store.state import RunState

PLACES = (DevicePlace(index=0, name="a"), DevicePlace(index=1, name="b"))


class Counted:
    """A driver that counts, and knows the first device only."""

    def __init__(self) -> None:
        self.read_by: list[threading.Thread] = []
        self.opened = self.closed = 0

    def __call__(self, kind: DeviceKind) -> Counted:
        assert kind is DeviceKind.CPU
        self.opened += 1
        return self

    def read(self, place: DevicePlace) -> Reading:
        self.read_by.append(threading.current_thread())
        if place.index:
            raise NotRead("who is that?")
        return Reading(temperature=40.0 + len(self.read_by))

    def clocks(self, place: DevicePlace) -> ClockState:
        raise AssertionError("the monitor does not ask")

    def close(self) -> None:
        self.closed += 1


def state_of(run: RunFolder) -> RunState:
    watch = Watch(run.paths)
    watch.look()
    assert watch.state is not None
    return watch.state


def at_work(folder: Path, host: str = "") -> RunFolder:
    run = RunFolder(folder)
    run.start(host=host or platform.node(), devices=PLACES)
    return run


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_they_are_read_by_a_thread_until_the_run_is_over(tmp_path: Path) -> None:
    run = at_work(tmp_path)
    driver = Counted()
    gauges = Gauges(0.01, driver)
    gauges.follow(state_of(run))
    until(lambda: len(driver.read_by) > 4)
    gauges.follow(state_of(run))  # the same run: the same thread
    assert driver.opened == 1
    assert gauges.readings.keys() == {0} and gauges.note == "who is that?"
    assert threading.current_thread() not in driver.read_by
    run.close()
    gauges.follow(state_of(run))
    assert (gauges.readings, gauges.note) == ({}, "No live device data: this run is not active")
    until(lambda: driver.closed == 1)
    assert gauges.readings == {}


def test_no_driver_is_opened_for_another_host_or_an_older_run(tmp_path: Path) -> None:
    driver = Counted()
    gauges = Gauges(0.01, driver)
    gauges.follow(None)
    assert gauges.note is not None
    gauges.follow(state_of(at_work(tmp_path / "other", "elsewhere")))
    assert gauges.note == "no live data: the run is on another host"
    older = RunFolder(tmp_path / "older")
    older.start()
    gauges.follow(state_of(older))
    assert gauges.note == "no live data: the journal does not name host and devices"
    assert read_once(state_of(older), driver) == ({}, "no live data: the journal does not name host and devices")
    assert driver.opened == 0


def test_without_a_driver_it_is_said_and_not_tried_again(tmp_path: Path) -> None:
    tries = []

    def absent(kind: DeviceKind) -> Counted:
        tries.append(kind)
        raise NotRead("amdsmi is not installed")

    state = state_of(at_work(tmp_path))
    gauges = Gauges(0.01, absent)
    for _ in range(3):
        gauges.follow(state)
        until(lambda: gauges.note is not None)
    assert gauges.note == "amdsmi is not installed"
    assert tries == [DeviceKind.CPU]
    assert read_once(state, absent) == ({}, "amdsmi is not installed")


def test_a_library_that_fails_oddly_ends_the_readings_only(tmp_path: Path) -> None:
    driver = Counted()
    driver.read = lambda place: 1 // 0  # type: ignore[assignment,method-assign,return-value]
    gauges = Gauges(0.01, driver)
    gauges.follow(state_of(at_work(tmp_path)))
    until(lambda: driver.closed == 1)
    assert gauges.readings == {} and gauges.note is not None and "ZeroDivisionError" in gauges.note


def test_the_processor_of_this_host(tmp_path: Path) -> None:
    readings, note = read_once(state_of(at_work(tmp_path)))
    assert note is None
    found = readings[0]
    assert found.utilisation is not None and 0 <= found.utilisation <= 1
    assert found.memory_used is not None and found.memory_total is not None
    assert 0 < found.memory_used < found.memory_total


def test_a_journal_from_before_there_were_devices_in_it(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.paths.journal.write_text(
        '{"time":1.0,"event":"run_started","resumed":false}\n'
        '{"time":2.0,"event":"stage_entered","key":{"problem":"1_ReLU","attempt":1,"sample":1},"stage":"time"}\n'
    )
    state = state_of(run)
    assert (state.host, state.devices, state.measured) == (None, (), {})
    assert state.problems["1_ReLU"].samples[1, 1].device is None
