"""What the driver of a GPU says of its clocks before, during and after a measurement."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Protocol

from hkbench.device_kinds import model_of
from hkbench.drivers.base import NotRead, open_driver
from hkbench.drivers.nvidia_smi import NvidiaSmi
from hkbench.records import ClockState, DeviceFacts, DeviceKind, DevicePlace, Readback

LOOK_SECONDS = 0.1  #: between two readings, at least
LOOK_SHARE = 0.02  #: of the time, that readings take at most: a driver's tool takes 50 ms
MAX_LOOKS = 64  #: that a verdict keeps
MAX_CLOCK_CHANGE = 0.05  #: of the clocks during the measurement, from the lowest to the highest, over their median


class Source(Protocol):
    """Whom clocks are asked of."""

    def clocks(self, place: DevicePlace) -> ClockState:
        """Read one device. Raises `NotRead` where the driver does not know it."""

    def close(self) -> None:
        """Let go of the library."""


def open_source(kind: DeviceKind) -> Source:
    """Open the driver's library, else its tool. Raises `NotRead` where neither is here."""
    try:
        return open_driver(kind)
    except NotRead:
        if kind is DeviceKind.CUDA:
            return NvidiaSmi()
        raise


class ClockLog:
    """Readings of one measurement. On a host, or where the driver does not say, there are none."""

    def __init__(
        self,
        facts: DeviceFacts,
        opening: Callable[[DeviceKind], Source] = open_source,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._place = DevicePlace(index=facts.index, name=facts.name, uuid=facts.uuid, pci=facts.pci)
        self._clock = clock
        self._driver: Source | None = None
        self._during: list[ClockState] = []
        self._cost, self._next = 0.0, 0.0
        self._before: ClockState | None = None
        if not model_of(facts.kind).on_host:
            try:
                self._driver = opening(facts.kind)
            except NotRead:
                return
            self._before = self._look()

    def _look(self) -> ClockState | None:
        if self._driver is None:
            return None
        began = self._clock()
        try:
            return self._driver.clocks(self._place)
        except NotRead:
            self._driver.close()
            self._driver = None
            return None
        finally:
            ended = self._clock()
            self._cost = ended - began
            self._next = ended + max(LOOK_SECONDS, self._cost / LOOK_SHARE)

    def during(self) -> None:
        """Read after a pair of calls, which no clock is running for; not after each."""
        if self._driver is None or self._clock() < self._next:
            return
        if (found := self._look()) is not None:
            self._during.append(found)

    def end(self, pairs: int) -> Readback | None:
        """Return all readings; `pairs` of calls were timed."""
        after = self._look()
        if self._driver is None or after is None or self._before is None:
            return None
        self._driver.close()
        self._driver = None
        used = None
        if pairs and after.energy_joules is not None and self._before.energy_joules is not None:
            used = (after.energy_joules - self._before.energy_joules) / pairs
        step = -(-len(self._during) // MAX_LOOKS) or 1
        kept = tuple(self._during[::step])
        return Readback(before=self._before, during=kept, after=after, joules_per_pair=used)


def clock_warnings(found: Readback | None) -> tuple[str, ...]:
    """Say where the clocks moved while calls were timed, and where something held them down."""
    if found is None:
        return ()
    warnings = []
    for name in ("clock_mhz", "memory_clock_mhz"):
        clocks = [clock for one in found.during if (clock := getattr(one, name))]
        if len(clocks) > 1 and max(clocks) - min(clocks) > MAX_CLOCK_CHANGE * median(clocks):
            which = "memory clock" if name == "memory_clock_mhz" else "clock"
            between = f"{min(clocks):.0f} and {max(clocks):.0f} MHz"
            warnings.append(f"the GPU's {which} moved between {between} during the measurement")
    reasons = dict.fromkeys(reason for one in (*found.during, found.after) for reason in one.throttled or ())
    if reasons:
        warnings.append(f"the GPU's clock was held down during the measurement: {', '.join(reasons)}")
    return tuple(warnings)
