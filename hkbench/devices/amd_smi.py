"""Ask AMD SMI (module amdsmi, which ROCm brings) what this machine's AMD GPUs are. No context is made on a GPU.

Written from the documentation and the source of its Python interface, ROCm 6.0 to 7.2, and never run on an AMD GPU.
What an ASIC does not have comes as "N/A", as the largest number of its C type, or as an exception.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from types import ModuleType
from typing import TypeVar

from hkbench.devices.reading import GpuReading, SourceReport

T = TypeVar("T")
AMD_SMI = "AMD SMI"
KIB, MIB = 1 << 10, 1 << 20
_UNKNOWN = frozenset({0, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})


def ask_amd_smi() -> SourceReport:
    """Return the GPUs of the driver, those that `HIP_VISIBLE_DEVICES` hides among them, or why there are none."""
    try:
        with redirect_stdout(io.StringIO()):  # without its library it prints that before it fails
            smi = importlib.import_module("amdsmi")
    except ModuleNotFoundError:
        return SourceReport(source=AMD_SMI, error="amdsmi is not installed (pip install /opt/rocm/share/amd_smi)")
    except (ImportError, OSError, KeyError, AttributeError) as error:  # a library that is missing or older
        return SourceReport(source=AMD_SMI, error=f"amdsmi cannot be loaded: {_one_line(error)}")
    try:
        smi.amdsmi_init()
        try:
            handles = smi.amdsmi_get_processor_handles()
            return SourceReport(source=AMD_SMI, gpus=tuple(_gpu(smi, *each) for each in enumerate(handles)))
        finally:
            smi.amdsmi_shut_down()
    except smi.AmdSmiException as error:
        why = "may this user open /dev/kfd and /dev/dri/renderD*?"
        return SourceReport(source=AMD_SMI, error=f"{_one_line(error)}; {why}")


def _gpu(smi: ModuleType, index: int, handle: object) -> GpuReading:
    def ask(function: Callable[[], T]) -> T | None:
        try:
            return function()
        except (smi.AmdSmiException, AttributeError):  # this ASIC, or this release, does not have it
            return None

    kinds = smi.AmdSmiClkType
    asic = ask(lambda: smi.amdsmi_get_gpu_asic_info(handle)) or {}
    memory = ask(lambda: smi.amdsmi_get_gpu_vram_info(handle)) or {}
    clock = ask(lambda: smi.amdsmi_get_clock_info(handle, kinds.GFX)) or {}
    memory_clock = ask(lambda: smi.amdsmi_get_clock_info(handle, kinds.MEM)) or {}
    caches = (ask(lambda: smi.amdsmi_get_gpu_cache_info(handle)) or {}).get("cache", ())
    sizes = {level: [_bytes(one, KIB, "cache_size") or 0 for one in caches if one.get("cache_level") == level]
             for level in (2, 3)}  # fmt: skip
    pci = ask(lambda: smi.amdsmi_get_gpu_device_bdf(handle))
    return GpuReading(
        index=index,
        name=_text(asic, "market_name"),
        arch=_text(asic, "target_graphics_version"),
        compute_units=_number(asic, "num_compute_units"),
        memory_bytes=_bytes(memory, MIB, "vram_size", "vram_size_mb"),
        clock_mhz=_number(clock, "max_clk"),
        memory_clock_mhz=_number(memory_clock, "max_clk"),
        bus_bits=_number(memory, "vram_bit_width"),
        l2_bytes=max(sizes[2], default=0) or None,
        l3_bytes=max(sizes[3], default=0) or None,
        pci=pci.partition(".")[0].lower() if isinstance(pci, str) else None,
    )


def _number(fields: Mapping[str, object], *names: str) -> int | None:
    """Return the first of `names` that is there and known."""
    values = (fields.get(name) for name in names)
    return next((value for value in values if isinstance(value, int) and value not in _UNKNOWN), None)


def _bytes(fields: Mapping[str, object], unit: int, *names: str) -> int | None:
    value = _number(fields, *names)
    return None if value is None else value * unit


def _text(fields: Mapping[str, object], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) and value not in ("", "N/A") else None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
