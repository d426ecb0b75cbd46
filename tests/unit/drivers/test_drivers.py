"""Readings of GPUs that are not there: stand-ins for pynvml and amdsmi, shaped as their documentation says."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from support.run_folder import RunFolder, run_config

from hkbench.drivers.amd import AmdSmi
from hkbench.drivers.base import NotRead, Reading
from hkbench.drivers.nvidia import Nvml
from hkbench.drivers.nvidia_smi import NvidiaSmi
from hkbench.monitor.live import Watch
from hkbench.records import ClockState, DeviceKind, DevicePlace

GIB = 1 << 30
PLACE = DevicePlace(index=0, name="a GPU", uuid="GPU-aa", pci="0000:1b:00")


def nvml(missing: tuple[str, ...] = ()) -> ModuleType:
    """nvidia-ml-py: a GPU with the uuid GPU-aa; functions in `missing` are not supported by it."""
    module: Any = ModuleType("pynvml")

    class NVMLError(Exception):
        pass

    def handle(uuid: str) -> str:
        if uuid != "GPU-aa":
            raise NVMLError("Not Found")
        return "handle"

    def said(name: str, answer: object) -> Callable[..., object]:
        def function(handle: str, *_: object) -> object:
            assert handle == "handle"
            if name in missing:
                raise NVMLError("Not Supported")
            return answer

        return function

    module.NVMLError, module.NVML_TEMPERATURE_GPU, module.NVML_CLOCK_SM = NVMLError, 0, 1
    module.NVML_CLOCK_MEM = 2
    module.nvmlInit = module.nvmlShutdown = lambda: None
    module.nvmlDeviceGetHandleByUUID = handle
    answers = {
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=141 * GIB, used=12 * GIB, free=129 * GIB),
        "nvmlDeviceGetPowerUsage": 312_500,
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=97, memory=40),
        "nvmlDeviceGetTemperature": 54,
        "nvmlDeviceGetClockInfo": 1980,
        "nvmlDeviceGetTotalEnergyConsumption": 4_500_250,
        "nvmlDeviceGetCurrentClocksThrottleReasons": 0x1 | 0x4 | 0x40,
    }
    for name, answer in answers.items():
        setattr(module, name, said(name, answer))
    return module  # type: ignore[no-any-return]


def test_an_nvidia_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml())
    driver = Nvml()
    found = driver.read(PLACE)
    driver.close()
    assert found == Reading(
        utilisation=0.97, temperature=54, memory_used=12 * GIB, memory_total=141 * GIB, clock=1980, power=312.5
    )


def test_the_clocks_of_an_nvidia_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml())
    assert Nvml().clocks(PLACE) == ClockState(
        clock_mhz=1980, memory_clock_mhz=1980, power_watts=312.5, temperature=54, energy_joules=4500.25,
        throttled=("power cap", "temperature (hardware)"),
    )  # fmt: skip
    lacks = ("nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetCurrentClocksThrottleReasons")
    monkeypatch.setitem(sys.modules, "pynvml", nvml(lacks))
    found = Nvml().clocks(PLACE)
    assert found.throttled is None and found.energy_joules is None and found.power_watts == 312.5


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("1980, 2619, 312.51, 54, 0x0000000000000004\n",
         ClockState(
             clock_mhz=1980, memory_clock_mhz=2619, power_watts=312.51, temperature=54, throttled=("power cap",)
         )),
        ("345, 2619, 71.30, 31, 0x0000000000000001\n",
         ClockState(clock_mhz=345, memory_clock_mhz=2619, power_watts=71.3, temperature=31, throttled=())),
        ("[N/A], [N/A], [N/A], 31, [N/A]\n", ClockState(temperature=31)),
    ],
)  # fmt: skip
def test_nvidia_smi(said: str, expected: ClockState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n[ $2 = GPU-aa ] || exit 6\ncat <<END\n{said}END\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert NvidiaSmi().clocks(PLACE) == expected
    with pytest.raises(NotRead, match="GPU-bb"):
        NvidiaSmi().clocks(PLACE.model_copy(update={"uuid": "GPU-bb"}))


def test_without_nvidia_smi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NotRead, match="nvidia-smi"):
        NvidiaSmi()


def test_what_an_nvidia_gpu_does_not_have_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml(("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage")))
    found = Nvml().read(PLACE)
    assert (found.utilisation, found.power, found.temperature) == (None, None, 54)


def test_an_nvidia_gpu_that_is_not_named_or_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml())
    with pytest.raises(NotRead, match="does not say which"):
        Nvml().read(PLACE.model_copy(update={"uuid": None}))
    with pytest.raises(NotRead, match="does not know GPU-bb"):
        Nvml().read(PLACE.model_copy(update={"uuid": "GPU-bb"}))


def test_without_nvidia_s_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = nvml()

    def absent() -> None:
        raise module.NVMLError("NVML Shared Library Not Found")

    module.nvmlInit = absent
    monkeypatch.setitem(sys.modules, "pynvml", module)
    with pytest.raises(NotRead, match="NVML: NVML Shared Library Not Found"):
        Nvml()


class Temperature(IntEnum):
    EDGE, HOTSPOT = 0, 1


class Metric(IntEnum):
    CURRENT = 0


class Clock(IntEnum):
    SYS, GFX, MEM = 0, 1, 4


#: What Python gets of one GPU: ROCm 6.0 to 6.1, 6.2 to 7.2 on MI300X, and an older card there.
SHAPES: dict[str, dict[str, Any]] = {
    "6.0": {
        "clock": {"cur_clk": 2100, "max_clk": 2100, "min_clk": 132, "sleep_clk": 0},
        "power": {"current_socket_power": 550, "average_socket_power": 0xFFFF, "power_limit": 750},
        "hot": 61, "edge": None,
    },
    "7.2": {
        "clock": {"clk": 2100, "min_clk": 132, "max_clk": 2100, "clk_locked": 0, "clk_deep_sleep": "N/A"},
        "power": {
            "socket_power": 550, "current_socket_power": 550, "average_socket_power": "N/A", "power_limit": 750_000_000,
        },
        "hot": 61, "edge": None,
    },
    "7.2, MI200": {
        "clock": {"clk": 2100, "min_clk": 500, "max_clk": 2100, "clk_locked": "N/A", "clk_deep_sleep": "N/A"},
        "power": {
            "socket_power": 550, "current_socket_power": "N/A", "average_socket_power": 550, "power_limit": 750_000_000,
        },
        "hot": None, "edge": 61,
    },
}  # fmt: skip


def amd_smi(shape: dict[str, Any], addresses: tuple[str, ...] = ("0000:05:00.0", "0000:1B:00.0")) -> ModuleType:
    """amdsmi: GPUs at these addresses, of which the last is asked for."""
    module: Any = ModuleType("amdsmi")

    class AmdSmiException(Exception):
        pass

    class AmdSmiLibraryException(AmdSmiException):
        pass

    def sensor(handle: str, kind: Temperature, metric: Metric) -> int:
        assert handle == addresses[-1] and metric is Metric.CURRENT
        found = {Temperature.HOTSPOT: shape["hot"], Temperature.EDGE: shape["edge"]}[kind]
        if found is None:
            raise AmdSmiLibraryException("Error code:\n\t2 | AMDSMI_STATUS_NOT_SUPPORTED - Feature not supported")
        return int(found)

    module.AmdSmiException, module.AmdSmiLibraryException = AmdSmiException, AmdSmiLibraryException
    module.AmdSmiTemperatureType, module.AmdSmiTemperatureMetric, module.AmdSmiClkType = Temperature, Metric, Clock
    module.amdsmi_init = module.amdsmi_shut_down = lambda: None
    module.amdsmi_get_processor_handles = lambda: list(addresses)
    module.amdsmi_get_gpu_device_bdf = lambda handle: handle
    module.amdsmi_get_gpu_activity = lambda _: {"gfx_activity": 97, "umc_activity": 40, "mm_activity": "N/A"}
    module.amdsmi_get_gpu_vram_usage = lambda _: {"vram_total": 196592, "vram_used": 1024}
    module.amdsmi_get_clock_info = lambda _, kind: shape["clock"] if kind is Clock.GFX else {}
    module.amdsmi_get_power_info = lambda _: shape["power"]
    module.amdsmi_get_temp_metric = sensor
    return module  # type: ignore[no-any-return]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_an_amd_gpu(shape: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", amd_smi(shape))
    driver = AmdSmi()
    found = driver.read(PLACE)
    driver.close()
    assert found == Reading(
        utilisation=0.97, temperature=61, memory_used=GIB, memory_total=196592 << 20, clock=2100, power=550
    )


ENERGY = {
    "6.0": {"power": 1_000_000, "counter_resolution": 15.3, "timestamp": 1},
    "7.2": {"energy_accumulator": 1_000_000, "counter_resolution": 15.3, "timestamp": 1},
}


@pytest.mark.parametrize("release", ENERGY)
def test_the_clocks_of_an_amd_gpu(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = amd_smi(SHAPES[release])
    module.amdsmi_get_energy_count = lambda _: ENERGY[release]
    if release == "7.2":  # before 6.3 there is no such function
        module.amdsmi_get_violation_status = lambda _: {
            "active_ppt_pwr": True, "active_prochot_thrm": False, "active_hbm_thrm": "N/A", "per_ppt_pwr": 12,
        }  # fmt: skip
    monkeypatch.setitem(sys.modules, "amdsmi", module)
    found = AmdSmi().clocks(PLACE)
    assert (found.clock_mhz, found.power_watts, found.temperature) == (2100, 550, 61)
    assert found.memory_clock_mhz is None and found.energy_joules == pytest.approx(15.3)
    assert found.throttled == (("power cap",) if release == "7.2" else None)


def test_an_amd_gpu_that_says_little(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = amd_smi(SHAPES["7.2"])
    module.amdsmi_get_gpu_activity = lambda _: {"gfx_activity": "N/A", "umc_activity": "N/A", "mm_activity": "N/A"}
    del module.amdsmi_get_power_info
    monkeypatch.setitem(sys.modules, "amdsmi", module)
    found = AmdSmi().read(PLACE)
    assert (found.utilisation, found.power, found.temperature) == (None, None, 61)


def test_an_amd_gpu_by_its_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where torch does not say on which bus it is."""
    module: Any = amd_smi(SHAPES["7.2"])
    uuids = {"0000:05:00.0": "GPU-11", "0000:1B:00.0": "GPU-AA"}
    module.amdsmi_get_gpu_enumeration_info = lambda handle: {"hip_id": 1, "hip_uuid": uuids[handle]}
    monkeypatch.setitem(sys.modules, "amdsmi", module)
    assert AmdSmi().read(PLACE.model_copy(update={"pci": None})).temperature == 61


def test_amd_gpus_that_cannot_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", amd_smi(SHAPES["7.2"], ("0000:1b:00.0", "0000:1b:00.1")))
    with pytest.raises(NotRead, match="partitioned"):
        AmdSmi().read(PLACE)
    with pytest.raises(NotRead, match="does not know the GPU at 0000:2b:00"):
        AmdSmi().read(PLACE.model_copy(update={"pci": "0000:2b:00"}))
    with pytest.raises(NotRead, match="does not say which"):
        AmdSmi().read(PLACE.model_copy(update={"pci": None, "uuid": None}))


def test_without_amd_s_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = amd_smi(SHAPES["7.2"])

    def absent() -> None:
        raise module.AmdSmiLibraryException("Error code:\n\t34 | AMDSMI_STATUS_DRIVER_NOT_LOADED")

    module.amdsmi_init = absent
    monkeypatch.setitem(sys.modules, "amdsmi", module)
    with pytest.raises(NotRead, match="AMD SMI: Error code: 34"):
        AmdSmi()


@pytest.mark.parametrize(("name", "driver"), [("pynvml", Nvml), ("amdsmi", AmdSmi)])
def test_without_the_package(name: str, driver: type[Nvml | AmdSmi], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotRead, match=f"{name} "):
        driver()


def test_a_snapshot_has_the_readings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml())
    config = run_config().model_copy(update={"device": DeviceKind.CUDA})
    run = RunFolder(tmp_path, config)
    run.start(host=platform.node(), devices=(PLACE, DevicePlace(index=1, name="another", uuid="GPU-bb")))
    watch = Watch(run.paths)
    watch.look()
    found = json.loads(watch.snapshot(run.now).model_dump_json())
    assert found["host"] == platform.node()
    assert [device["index"] for device in found["devices"]] == [0, 1]
    assert found["devices"][0]["reading"]["power"] == 312.5
    assert found["devices"][1]["reading"] is None
    assert found["devices_note"] == "NVML does not know GPU-bb: Not Found"
