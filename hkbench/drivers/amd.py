"""AMD's GPUs by AMD SMI (module amdsmi, which ROCm brings).

Written from the documentation and the source of its Python interface, ROCm 6.0 to 7.2, and never run on an AMD GPU.
What an ASIC does not have comes as "N/A", as the largest number of its C type, or as an exception. The clock is `clk`,
before 6.2 `cur_clk`; the power is `current_socket_power` on MI300 and later, `average_socket_power` on others.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import Any, TypeVar

from hkbench.drivers.base import NotRead, Reading
from hkbench.records import ClockState, DevicePlace

T = TypeVar("T")
_MIB = 1 << 20
_MICROJOULE = 1e-6  # the unit of the energy counter's resolution
#: Fields of `amdsmi_get_violation_status` (ROCm 6.3 and later, MI300 and later) that are true while the clock is held.
_VIOLATIONS = {
    "active_prochot_thrm": "temperature (processor hot)",
    "active_ppt_pwr": "power cap",
    "active_socket_thrm": "temperature (socket)",
    "active_vr_thrm": "temperature (voltage regulator)",
    "active_hbm_thrm": "temperature (memory)",
}
_UNKNOWN = frozenset({0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})


class AmdSmi:
    """The library, opened; no context is made on any GPU."""

    def __init__(self) -> None:
        try:
            with redirect_stdout(io.StringIO()):  # without its library it prints that before it fails
                self._smi: Any = importlib.import_module("amdsmi")
        except ModuleNotFoundError:
            raise NotRead("amdsmi is not installed (pip install /opt/rocm/share/amd_smi)") from None
        except (
            ImportError,
            OSError,
            KeyError,
            AttributeError,
        ) as error:  # a library that is missing or older
            raise NotRead(f"amdsmi cannot be loaded: {_one(error)}") from None
        try:
            self._smi.amdsmi_init()
            self._handles = self._found()
        except self._smi.AmdSmiException as error:
            raise NotRead(f"AMD SMI: {_one(error)}") from None

    def _found(self) -> dict[str, list[Any]]:
        """Return handles by PCI domain, bus and device: the parts of a partitioned GPU have these in common."""
        handles: dict[str, list[Any]] = {}
        for handle in self._smi.amdsmi_get_processor_handles():
            name = self._said(lambda: self._smi.amdsmi_get_gpu_device_bdf(handle))  # noqa: B023 - called at once
            if isinstance(name, str):
                handles.setdefault(name.partition(".")[0].lower(), []).append(handle)
        return handles

    def read(self, place: DevicePlace) -> Reading:
        """Return the GPU at the PCI address of `place`, else the one with its uuid."""
        smi, handle = self._smi, self._handle(place)
        kinds, now = smi.AmdSmiTemperatureType, smi.AmdSmiTemperatureMetric.CURRENT
        memory = self._fields(lambda: smi.amdsmi_get_gpu_vram_usage(handle))
        used, total = _number(memory, "vram_used"), _number(memory, "vram_total")  # MiB both
        busy = _number(self._fields(lambda: smi.amdsmi_get_gpu_activity(handle)), "gfx_activity")
        clocks = self._fields(lambda: smi.amdsmi_get_clock_info(handle, smi.AmdSmiClkType.GFX))
        # MI300 has no sensor at the edge.
        hot = self._said(lambda: smi.amdsmi_get_temp_metric(handle, kinds.HOTSPOT, now))
        hot = self._said(lambda: smi.amdsmi_get_temp_metric(handle, kinds.EDGE, now)) if hot is None else hot
        power = self._fields(lambda: smi.amdsmi_get_power_info(handle))
        return Reading(
            utilisation=None if busy is None else busy / 100,
            temperature=_number({"now": hot}, "now"),
            memory_used=None if used is None else int(used) * _MIB,
            memory_total=None if total is None else int(total) * _MIB,
            clock=_number(clocks, "clk", "cur_clk"),
            power=_number(power, "current_socket_power", "average_socket_power"),
        )

    def clocks(self, place: DevicePlace) -> ClockState:
        """Read what decides how fast the GPU at the PCI address of `place` is, else the one with its uuid."""
        smi, handle = self._smi, self._handle(place)
        reading = self.read(place)
        energy = self._fields(lambda: smi.amdsmi_get_energy_count(handle))
        ticks, each = _number(energy, "energy_accumulator", "power"), _number(energy, "counter_resolution")
        violations = self._fields(lambda: smi.amdsmi_get_violation_status(handle))
        known = [name for name in _VIOLATIONS if isinstance(violations.get(name), bool)]
        return ClockState(
            clock_mhz=reading.clock,
            memory_clock_mhz=_number(
                self._fields(lambda: smi.amdsmi_get_clock_info(handle, smi.AmdSmiClkType.MEM)), "clk", "cur_clk"
            ),
            power_watts=reading.power,
            temperature=reading.temperature,
            throttled=tuple(_VIOLATIONS[name] for name in known if violations[name]) if known else None,
            energy_joules=None if ticks is None or each is None else ticks * each * _MICROJOULE,
        )

    def _handle(self, place: DevicePlace) -> Any:
        if place.pci is not None:
            found = self._handles.get(place.pci.lower(), [])
        elif place.uuid is not None:
            known = [(handle, self._uuid(handle)) for handles in self._handles.values() for handle in handles]
            found = [handle for handle, uuid in known if uuid == place.uuid.lower()]
        else:
            raise NotRead("the journal does not say which GPU it is")
        if not found:
            raise NotRead(f"AMD SMI does not know the GPU at {place.pci or place.uuid}")
        if len(found) > 1:
            raise NotRead(f"the GPU at {place.pci or place.uuid} is partitioned, and its parts are not told apart")
        return found[0]

    def _uuid(self, handle: Any) -> str | None:
        """Return the UUID as HIP has it: `amdsmi_get_gpu_device_uuid` has another form."""
        text = self._fields(lambda: self._smi.amdsmi_get_gpu_enumeration_info(handle)).get("hip_uuid")
        return text.lower() if isinstance(text, str) else None

    def _fields(self, ask: Callable[[], Mapping[str, object]]) -> Mapping[str, object]:
        return self._said(ask) or {}

    def _said(self, ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except (self._smi.AmdSmiException, AttributeError):  # this ASIC, or this release, does not have it
            return None

    def close(self) -> None:
        self._said(self._smi.amdsmi_shut_down)


def _number(fields: Mapping[str, object], *names: str) -> float | None:
    """Return the first of `names` that is there and known."""
    values = (fields.get(name) for name in names)
    return next((float(value) for value in values if isinstance(value, int | float) and value not in _UNKNOWN), None)


def _one(error: Exception) -> str:
    return " ".join(str(error).split())
