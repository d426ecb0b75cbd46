"""What a driver says of a device, and how it is opened."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from hkbench.device_kinds import model_of
from hkbench.records import ClockState, DeviceKind, DevicePlace, Record


class Reading(Record):
    """One moment of one device. `None` where the driver does not say."""

    utilisation: float | None = None  #: share of the last moments in which it was at work, 0..1
    temperature: float | None = None  #: degrees Celsius
    memory_used: int | None = None  #: bytes, by everybody
    memory_total: int | None = None  #: bytes
    clock: float | None = None  #: MHz, of the compute units
    power: float | None = None  #: watts


class NotRead(Exception):
    """The driver cannot be asked; the message says why, in words for the screen."""


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
