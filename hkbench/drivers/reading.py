"""What a driver says of a device."""

from __future__ import annotations

from hkbench.records import Record


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
