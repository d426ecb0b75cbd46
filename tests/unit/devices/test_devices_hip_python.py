"""hip-python itself, against a small library in the place of libamdhip64: there is no GPU.

Runs where hip-python is installed, or in the interpreters that HKBENCH_HIP_PYTHON names (separated by colons), so that
both lines can be tried on one machine.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hkbench.devices.sources import ask_hip_python
from hkbench.toolchain.hip import find_hip

INTERPRETERS = [path for path in os.environ.get("HKBENCH_HIP_PYTHON", "").split(os.pathsep) if path]
if not INTERPRETERS and importlib.util.find_spec("hip") is not None:
    INTERPRETERS = [sys.executable]

LIBRARY = r"""
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
#include <cstdlib>
#include <cstring>
extern "C" hipError_t hipGetDeviceCount(int* count) {
  *count = std::getenv("FAKE_NO_DEVICE") ? 0 : 2;
  return *count ? hipSuccess : hipErrorNoDevice;
}
extern "C" hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600* p, int device) {
  std::memset(p, 0, sizeof *p);
  std::strcpy(p->name, device ? "" : "AMD Instinct MI355X");
  std::strcpy(p->gcnArchName, "gfx950:sramecc+:xnack-");
  p->multiProcessorCount = 256;
  p->warpSize = 64;
  p->sharedMemPerMultiprocessor = 163840;
  p->sharedMemPerBlock = 65536;
  p->regsPerBlock = 65536;
  p->totalGlobalMem = 309220868096ull;
  p->clockRate = 2400000;
  p->memoryBusWidth = 8192;
  p->l2CacheSize = 4194304;
  p->pciBusID = 0x75 + device;
  return hipSuccess;
}
"""

pytestmark = [
    pytest.mark.hipcc,
    pytest.mark.skipif(
        not INTERPRETERS, reason="hip-python is not installed; HKBENCH_HIP_PYTHON names none that has it"
    ),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a libamdhip64.so that knows two GPUs."""
    folder = tmp_path_factory.mktemp("hip")
    (folder / "library.cpp").write_text(LIBRARY)
    command = ["g++", "-shared", "-fPIC", f"-I{find_hip().include}", "library.cpp", "-o", "libamdhip64.so"]
    subprocess.run(command, cwd=folder, check=True, timeout=120, capture_output=True)
    return folder


@pytest.mark.parametrize("python", INTERPRETERS)
def test_its_calls_are_understood(python: str, library: Path) -> None:
    report = ask_hip_python({"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(library)}, python)
    assert report.error is None
    one, two = report.gpus
    assert (one.name, one.arch, one.pci) == ("AMD Instinct MI355X", "gfx950", "0000:75:00")
    assert (one.compute_units, one.wave_size, one.lds_bytes, one.lds_block_bytes) == (256, 64, 163840, 65536)
    assert (one.memory_bytes, one.clock_mhz, one.bus_bits, one.l2_bytes) == (309220868096, 2400, 8192, 4194304)
    assert one.memory_clock_mhz is None and one.registers is None  # the library says 0
    assert (two.index, two.name, two.pci) == (1, None, "0000:76:00")


@pytest.mark.parametrize("python", INTERPRETERS)
def test_its_errors_are_told(python: str, library: Path) -> None:
    found = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(library), "FAKE_NO_DEVICE": "1"}
    report = ask_hip_python(found, python)
    assert report.error is not None and "hipGetDeviceCount failed with hipErrorNoDevice" in report.error
    if not Path("/opt/rocm").exists():
        absent = ask_hip_python({"PATH": os.environ["PATH"]}, python)
        assert absent.error is not None and "HIP's library cannot be opened" in absent.error
