"""How the devices of a run do: asked of their driver, on the run's own host, by a thread, every two seconds.

The drivers' management libraries (NVML, AMD SMI) read what the driver keeps anyway. They open no context on a device,
and nothing of CUDA or HIP is loaded here.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable

from hkbench.drivers.base import Driver, NotRead, Reading, open_driver
from hkbench.records import DeviceKind, DevicePlace
from hkbench.store.state import RunState

SECONDS = 2.0  #: between two readings; they are for people


class Gauges:
    """The last readings of the devices of one run."""

    def __init__(self, seconds: float = SECONDS, driver: Callable[[DeviceKind], Driver] = open_driver) -> None:
        self.readings: dict[int, Reading] = {}  #: by the device's index in the run
        self.note: str | None = None  #: why there are none
        self._seconds, self._open = seconds, driver
        self._what: tuple[DeviceKind, tuple[DevicePlace, ...]] | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def follow(self, state: RunState | None) -> None:
        """Read the devices of this run from now on; none where that is another host's, over, or not known."""
        note = absence(state)
        what = (state.config.device, state.devices) if state is not None and note is None else None
        if what == self._what:
            self.note = self.note if what is not None else note
            return
        self.close()
        self._what, self.note = what, note
        if what is not None:
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(*what, self._stop), daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop reading. A thread that is in the driver ends when that comes back."""
        self._stop.set()
        self._what, self._thread, self.readings = None, None, {}

    def _run(self, kind: DeviceKind, places: tuple[DevicePlace, ...], stop: threading.Event) -> None:
        try:
            driver = self._open(kind)
        except NotRead as error:
            if not stop.is_set():
                self.note = str(error)
            return
        try:
            while not stop.is_set():
                readings, note = _read(driver, places)
                if not stop.is_set():
                    self.readings, self.note = readings, note
                stop.wait(self._seconds)
        except Exception as error:  # noqa: BLE001 - the thread ends: a library that is at odds with itself ends no more
            self.readings, self.note = {}, f"the driver's library failed: {error!r}"
        finally:
            driver.close()


def absence(state: RunState | None) -> str | None:
    """Return why the devices of a run are not read here; `None` where they may be."""
    if state is None or state.over:
        return "No live device data: this run is not active"
    if state.host is None or not state.devices:
        return "no live data: the journal does not name host and devices"
    if state.host != platform.node():
        return "no live data: the run is on another host"
    if all(place.host not in (None, state.host) for place in state.devices):
        return "no live data: the devices are on other nodes of a cluster"
    return None


def read_once(
    state: RunState, driver: Callable[[DeviceKind], Driver] = open_driver
) -> tuple[dict[int, Reading], str | None]:
    """Return one reading of each device by its index, and why there is none of some."""
    note = absence(state)
    if note is not None:
        return {}, note
    try:
        opened = driver(state.config.device)
    except NotRead as error:
        return {}, str(error)
    try:
        return _read(opened, state.devices)
    finally:
        opened.close()


def _read(driver: Driver, places: tuple[DevicePlace, ...]) -> tuple[dict[int, Reading], str | None]:
    readings, note = {}, None
    for place in places:
        if place.host not in (None, platform.node()):
            note = "no live data of the other nodes of a cluster"
            continue
        try:
            readings[place.index] = driver.read(place)
        except NotRead as error:
            note = str(error)
    return readings, note
