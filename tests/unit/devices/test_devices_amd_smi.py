"""What AMD SMI says of GPUs that are not there: a stand-in for amdsmi, shaped as its documentation says."""

from __future__ import annotations

import sys
from enum import IntEnum
from types import ModuleType
from typing import Any

import pytest

from hkbench.devices.amd_smi import ask_amd_smi
from hkbench.devices.reading import GpuReading, SourceReport

KIB, MIB = 1 << 10, 1 << 20


class Clock(IntEnum):
    GFX, MEM = 1, 4


@pytest.fixture
def smi(monkeypatch: pytest.MonkeyPatch) -> Any:
    """amdsmi of ROCm 6.2 to 7.2 on one MI300X."""
    module: Any = ModuleType("amdsmi")
    module.AmdSmiException = type("AmdSmiException", (Exception,), {})
    module.AmdSmiClkType = Clock
    module.closed = 0

    def shut_down() -> None:
        module.closed += 1

    module.amdsmi_init, module.amdsmi_shut_down = (lambda: None), shut_down
    module.amdsmi_get_processor_handles = lambda: ["gpu"]
    module.amdsmi_get_gpu_device_bdf = lambda _: "0000:1B:00.0"
    module.amdsmi_get_gpu_asic_info = lambda _: {
        "market_name": "AMD Instinct MI300X", "num_compute_units": 304, "target_graphics_version": "gfx942",
    }  # fmt: skip
    module.amdsmi_get_gpu_vram_info = lambda _: {"vram_size": 196592, "vram_bit_width": 8192}
    module.amdsmi_get_clock_info = lambda _, kind: {"max_clk": 2100 if kind is Clock.GFX else 1300}
    levels = ((1, 32), (2, 4096), (3, 262144))
    caches = [{"cache_level": level, "cache_size": size} for level, size in levels]
    module.amdsmi_get_gpu_cache_info = lambda _: {"cache": caches}
    monkeypatch.setitem(sys.modules, "amdsmi", module)
    return module


def test_a_gpu(smi: Any) -> None:
    gpu = GpuReading(
        index=0, name="AMD Instinct MI300X", arch="gfx942", compute_units=304, memory_bytes=196592 * MIB,
        clock_mhz=2100, memory_clock_mhz=1300, bus_bits=8192, l2_bytes=4096 * KIB, l3_bytes=256 * MIB,
        pci="0000:1b:00",
    )  # fmt: skip
    assert ask_amd_smi() == SourceReport(source="AMD SMI", gpus=(gpu,))
    assert smi.closed == 1


def test_what_a_release_or_an_asic_does_not_have_is_not_known(smi: Any) -> None:
    def refused(_: object) -> dict[str, object]:
        raise smi.AmdSmiException("not supported")

    smi.amdsmi_get_gpu_asic_info = lambda _: {"market_name": "N/A", "num_compute_units": 0xFFFFFFFF}
    smi.amdsmi_get_gpu_vram_info = lambda _: {"vram_size_mb": 65520, "vram_bit_width": "N/A"}
    smi.amdsmi_get_gpu_device_bdf = refused
    del smi.amdsmi_get_gpu_cache_info
    del smi.amdsmi_get_clock_info
    assert ask_amd_smi().gpus == (GpuReading(index=0, memory_bytes=65520 * MIB),)


def test_why_there_are_none(smi: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise smi.AmdSmiException("Error code:\n\t34")

    smi.amdsmi_init = refused
    found = ask_amd_smi()
    assert found.gpus == () and str(found.error).startswith("Error code: 34; may this user open /dev/kfd")
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    assert "not installed" in str(ask_amd_smi().error)
