"""Open whom a kind of device is asked of."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from hkbench.device_kinds import model_of
from hkbench.drivers.reading import Reading
from hkbench.records import ClockState, DeviceKind, DevicePlace


class Driver(Protocol):
    """Whom a kind of device is asked of."""

    def read(self, place: DevicePlace) -> Reading:
        """Read one device. Raises `NotRead` where the driver does not know it."""

    def clocks(self, place: DevicePlace) -> ClockState:
        """Read what decides how fast it is. Raises `NotRead` where the driver does not know it."""

    def close(self) -> None:
        """Let go of the library."""


def open_driver(kind: DeviceKind) -> Driver:
    """Open the driver. Raises `NotRead` where its library is not installed or finds no driver."""
    module, _, name = model_of(kind).gauge.partition(":")
    driver: Driver = getattr(import_module(module), name)()
    return driver
