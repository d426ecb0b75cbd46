"""The script that asks HIP, with stand-ins for hip-python that are called in the way of either line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from devices_rocminfo_text import listing, mi300x

from hkbench.devices.sources import ask_hip_python, ask_rocminfo

#: Both lines return tuples that begin with an error code; the 7.x line wants the object that it fills.
COMMON = """
from enum import IntEnum
import os

class hipError_t(IntEnum):
    hipSuccess = 0
    hipErrorInvalidDevice = 101
    hipErrorNoDevice = 100

class hipDeviceProp_t:
    def fill(self, text):
        self.name, self.gcnArchName = text("AMD Instinct MI300X"), text("gfx942:sramecc+:xnack-")
        self.multiProcessorCount, self.warpSize = 304, 64
        self.sharedMemPerMultiprocessor, self.maxSharedMemoryPerMultiProcessor, self.sharedMemPerBlock = 0, 65536, 65536
        self.regsPerMultiprocessor, self.regsPerBlock = 131072, 65536
        self.totalGlobalMem, self.l2CacheSize = 205822885888, 4194304
        self.clockRate, self.memoryClockRate, self.memoryBusWidth = 2100000, 1300000, 8192
        self.pciDomainID, self.pciBusID, self.pciDeviceID = 0, 27, 0

def hipGetDeviceCount():
    if "FAKE_DLOPEN" in os.environ:
        raise RuntimeError("failed to dlopen 'libamdhip64.so'")
    if "FAKE_NO_DEVICE" in os.environ:
        return hipError_t.hipErrorNoDevice, 0
    return hipError_t.hipSuccess, 1
"""
SEVEN = """
def hipGetDeviceProperties(prop, deviceId):
    prop.fill(lambda text: text.encode() + b"\\0rest")
    return (hipError_t.hipSuccess,)
"""
TEN = """
def hipGetDeviceProperties(deviceId):
    prop = hipDeviceProp_t()
    prop.fill(str)
    return hipError_t.hipSuccess, prop
"""
FAILING = """
def hipGetDeviceProperties(deviceId):
    return hipError_t.hipErrorInvalidDevice, None
"""
ANOTHER = """
def hipGetDeviceProperties(*, device):
    return hipError_t.hipSuccess
hipDeviceProp_t = None
"""


def stand_in(folder: Path, version: str, call: str) -> dict[str, str]:
    """An environment in which `from hip import hip` finds a stand-in, with the version of its distribution."""
    (folder / "hip").mkdir()
    (folder / "hip/__init__.py").write_text("")
    (folder / "hip/hip.py").write_text(COMMON + call)
    about = folder / f"hip_python-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: hip-python\nVersion: {version}\n")
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder)}


@pytest.mark.parametrize(("version", "call"), [("7.2.2.562.43", SEVEN), ("10.0.0.0.1.2", TEN)])
def test_both_lines_of_hip_python(version: str, call: str, tmp_path: Path) -> None:
    report = ask_hip_python(stand_in(tmp_path, version, call))
    assert (report.source, report.error) == (f"hip-python {version}", None)
    (gpu,) = report.gpus
    assert (gpu.index, gpu.name, gpu.arch, gpu.pci) == (0, "AMD Instinct MI300X", "gfx942", "0000:1b:00")
    assert (gpu.compute_units, gpu.wave_size, gpu.lds_bytes, gpu.lds_block_bytes) == (304, 64, 65536, 65536)
    assert (gpu.registers, gpu.registers_block) == (131072, 65536)
    assert (gpu.clock_mhz, gpu.memory_clock_mhz, gpu.bus_bits) == (2100, 1300, 8192)
    assert (gpu.memory_bytes, gpu.l2_bytes, gpu.l3_bytes) == (205822885888, 4194304, None)


@pytest.mark.parametrize(
    ("call", "variable", "said"),
    [
        (TEN, "FAKE_DLOPEN", "cannot be opened (failed to dlopen 'libamdhip64.so'); is ROCm on LD_LIBRARY_PATH?"),
        (SEVEN, "FAKE_NO_DEVICE", "hipGetDeviceCount failed with hipErrorNoDevice; may this user open /dev/kfd"),
        (FAILING, "NOTHING", "hipGetDeviceProperties failed with hipErrorInvalidDevice"),
        (ANOTHER, "NOTHING", "called in neither of the known ways"),
    ],
)
def test_it_says_why_it_cannot(call: str, variable: str, said: str, tmp_path: Path) -> None:
    report = ask_hip_python({**stand_in(tmp_path, "7.2.2.562.43", call), variable: "1"})
    assert report.error is not None and said in report.error
    assert report.gpus == ()


def test_without_hip_python(tmp_path: Path) -> None:
    # -S: an interpreter without any installed packages
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    report = ask_hip_python({"PATH": os.environ["PATH"]}, str(python))
    assert report.error == "hip-python is not installed; `make setup` installs the line that fits ROCm"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo 'Memory access fault' >&2; exit 6", "hip_facts.py ended with code 6: Memory access fault"),
        ("echo nonsense", "asking HIP failed"),
        ("exit 0", "asking HIP failed"),
    ],
)
def test_a_process_that_dies_or_talks_nonsense(body: str, said: str, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{body}\n")
    python.chmod(0o755)
    report = ask_hip_python({"PATH": os.environ["PATH"]}, str(python))
    assert report.error is not None and said in report.error


def test_rocminfo_that_fails_or_is_missing(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "ROCM_PATH": str(tmp_path)}
    missing = ask_rocminfo(environment)
    assert missing.error is not None and "not installed" in missing.error
    program = tmp_path / "rocminfo"
    program.write_text("#!/bin/sh\necho 'Unable to open /dev/kfd read-write: Permission denied' >&2\nexit 1\n")
    program.chmod(0o755)
    failing = ask_rocminfo(environment)
    assert failing.error == "rocminfo ended with code 1: Unable to open /dev/kfd read-write: Permission denied"


@pytest.mark.parametrize("folder", ["bin", "core/bin"])
def test_rocminfo_below_rocm_s_folder(folder: str, tmp_path: Path) -> None:
    program = tmp_path / folder / "rocminfo"
    program.parent.mkdir(parents=True)
    (tmp_path / "listing").write_text(listing(mi300x(1)))
    program.write_text(f"#!/bin/sh\nexec /bin/cat {tmp_path / 'listing'}\n")
    program.chmod(0o755)
    report = ask_rocminfo({"PATH": "/nowhere", "ROCM_PATH": str(tmp_path)})
    assert report.error is None and [gpu.arch for gpu in report.gpus] == ["gfx942"]
