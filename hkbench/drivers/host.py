"""The CPU of this host, by psutil."""

from __future__ import annotations

import psutil

from hkbench.drivers.base import Reading
from hkbench.records import ClockState, DevicePlace


class Processor:
    """The CPU of this host; its utilisation is that since the reading before."""

    def __init__(self) -> None:
        psutil.cpu_percent(0.1)

    def read(self, _place: DevicePlace) -> Reading:
        memory = psutil.virtual_memory()
        return Reading(
            utilisation=psutil.cpu_percent() / 100, memory_used=memory.total - memory.available,
            memory_total=memory.total,
        )  # fmt: skip

    def clocks(self, _place: DevicePlace) -> ClockState:
        """Return nothing: cores have clocks of their own, and verdicts on a CPU read the scheduler's counts."""
        return ClockState()

    def close(self) -> None:
        """Close the driver; there is nothing to let go of."""
