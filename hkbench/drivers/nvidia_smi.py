"""NVIDIA's clocks by the tool that its driver brings, where the Python package of NVML is not installed."""

from __future__ import annotations

import shutil
import subprocess

from hkbench.drivers.base import NotRead
from hkbench.drivers.nvidia import throttle_reasons
from hkbench.records import ClockState, DevicePlace

SECONDS = 5.0
FIELDS = "clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_throttle_reasons.active"


class NvidiaSmi:
    """The tool; it knows no counter of energy."""

    def __init__(self) -> None:
        found = shutil.which("nvidia-smi")
        if found is None:
            raise NotRead("neither pynvml nor nvidia-smi is here (pip install nvidia-ml-py)")
        self._tool = found

    def clocks(self, place: DevicePlace) -> ClockState:
        """Read what decides how fast the GPU with the uuid of `place` is."""
        if place.uuid is None:
            raise NotRead("nobody says which GPU it is")
        command = [self._tool, "-i", place.uuid, f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS)
        except (OSError, subprocess.SubprocessError) as error:
            raise NotRead(f"nvidia-smi does not tell of {place.uuid}: {error}") from None
        values = [value.strip() for value in done.stdout.partition("\n")[0].split(",")]
        if len(values) != len(FIELDS.split(",")):
            raise NotRead(f"nvidia-smi answers {done.stdout[:200]!r}")
        clock, memory_clock, power, temperature = map(_number, values[:4])
        return ClockState(
            clock_mhz=clock,
            memory_clock_mhz=memory_clock,
            power_watts=power,
            temperature=temperature,
            throttled=throttle_reasons(int(values[4], 16)) if values[4].startswith("0x") else None,
        )

    def close(self) -> None:
        """Close the driver; there is nothing to let go of."""


def _number(text: str) -> float | None:
    """Return the number; None for "[N/A]", "[Not Supported]"."""
    return float(text) if text.replace(".", "", 1).isdigit() else None
