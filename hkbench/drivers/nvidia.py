"""NVIDIA's GPUs by NVML (package nvidia-ml-py, module pynvml)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

from hkbench.drivers.base import NotRead, Reading
from hkbench.records import ClockState, DevicePlace

T = TypeVar("T")
_WATT = 1e3  # NVML has milliwatts
_JOULE = 1e3  # and millijoules
#: Bits of nvmlClocksThrottleReasons that take clock away from work. Idle and clocks that somebody set do not.
_REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "temperature (software)",
    0x40: "temperature (hardware)",
    0x80: "power brake",
}


def throttle_reasons(bits: int) -> tuple[str, ...]:
    """Name the reasons for which the clock is held down."""
    return tuple(name for bit, name in _REASONS.items() if bits & bit)


class Nvml:
    """The library, opened; no context is made on any GPU."""

    def __init__(self) -> None:
        try:
            self._nvml: Any = importlib.import_module("pynvml")
        except ModuleNotFoundError:
            raise NotRead("pynvml is not installed (pip install nvidia-ml-py)") from None
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError as error:
            raise NotRead(f"NVML: {error}") from None
        self._handles: dict[str, Any] = {}

    def read(self, place: DevicePlace) -> Reading:
        """Read the GPU with the uuid of `place`: its index is not NVML's where CUDA_VISIBLE_DEVICES is set."""
        nvml, handle = self._nvml, self._handle(place)
        memory = self._said(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        power = self._said(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        busy = self._said(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        return Reading(
            utilisation=None if busy is None else busy / 100,
            temperature=self._said(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            memory_used=None if memory is None else memory.used,
            memory_total=None if memory is None else memory.total,
            clock=self._said(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            power=None if power is None else power / _WATT,
        )

    def clocks(self, place: DevicePlace) -> ClockState:
        """Read what decides how fast the GPU with the uuid of `place` is."""
        nvml, handle = self._nvml, self._handle(place)
        power = self._said(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        energy = self._said(lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle))
        reasons = self._said(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
        return ClockState(
            clock_mhz=self._said(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            memory_clock_mhz=self._said(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
            power_watts=None if power is None else power / _WATT,
            temperature=self._said(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            throttled=None if reasons is None else throttle_reasons(reasons),
            energy_joules=None if energy is None else energy / _JOULE,
        )

    def _handle(self, place: DevicePlace) -> Any:
        if place.uuid is None:
            raise NotRead("the journal does not say which GPU it is")
        if place.uuid not in self._handles:
            try:
                self._handles[place.uuid] = self._nvml.nvmlDeviceGetHandleByUUID(place.uuid)
            except self._nvml.NVMLError as error:
                raise NotRead(f"NVML does not know {place.uuid}: {error}") from None
        return self._handles[place.uuid]

    def _said(self, ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except self._nvml.NVMLError:  # this GPU, or a part of one, does not have it
            return None

    def close(self) -> None:
        self._said(self._nvml.nvmlShutdown)
