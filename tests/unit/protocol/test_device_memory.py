"""Memory of a device that two processes share, with a stand-in for the driver that is compiled against HIP's header."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hkbench.errors import ToolchainUnavailable
from hkbench.protocol.device_memory import Driver
from hkbench.toolchain.hip import find_hip

SOURCE = Path(__file__).parent / "data" / "memory_driver.cpp"
DEVICE = 1
STEP = 2 << 20
OTHER = """
import ctypes, sys
from hkbench.protocol.device_memory import Driver
path, by_value, fd, size = sys.argv[1], sys.argv[2] == "True", int(sys.argv[3]), int(sys.argv[4])
address = Driver(path, "hip", by_value).open(fd, size, 1)
assert ctypes.string_at(address, 5) == b"hello"
ctypes.memmove(address + size - 5, b"there", 5)
"""


@pytest.fixture(scope="module", params=[True, False], ids=["descriptor by value", "descriptor by pointer"])
def standing_in(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bool]:
    try:
        include = find_hip().root / "include"
    except ToolchainUnavailable as error:
        pytest.skip(f"HIP's headers are needed: {error}")
    by_value: bool = request.param
    library = tmp_path_factory.mktemp("driver") / "driver.so"
    command = ["g++", "-shared", "-fPIC", "-Wall", "-Werror", "-D__HIP_PLATFORM_AMD__", f"-I{include}", str(SOURCE)]
    command += ["-Wno-deprecated-declarations", "-o", str(library), *(["-DBY_VALUE"] if by_value else [])]
    subprocess.run(command, check=True)
    return str(library), by_value


def test_another_process_sees_what_is_written_and_writes_back(standing_in: tuple[str, bool]) -> None:
    path, by_value = standing_in
    address, size, fd = Driver(path, "hip", by_value).allocate(STEP + 1, DEVICE)
    assert size == 2 * STEP, "rounded up to the driver's granularity"
    ctypes.memmove(address, b"hello", 5)
    command = [sys.executable, "-c", OTHER, path, str(by_value), str(fd), str(size)]
    subprocess.run(command, check=True, pass_fds=[fd])
    assert ctypes.string_at(address + size - 5, 5) == b"there"


def test_what_was_given_back_is_gone_here_and_stays_elsewhere(standing_in: tuple[str, bool]) -> None:
    driver = Driver(standing_in[0], "hip", standing_in[1])
    address, size, fd = driver.allocate(STEP, DEVICE)
    other = driver.open(fd, size, DEVICE)
    driver.release(address, size)
    assert not any(f"{address:x}-" in line for line in Path("/proc/self/maps").read_text().splitlines())
    ctypes.memmove(other, b"still", 5)
    with pytest.raises(RuntimeError, match="hipMemUnmap failed: invalid argument"):
        driver.release(address, size)
    driver.release(other, size)
    os.close(fd)


def test_what_the_driver_refuses_is_named(standing_in: tuple[str, bool]) -> None:
    driver = Driver(standing_in[0], "hip", standing_in[1])
    with pytest.raises(RuntimeError, match=r"hipMemCreate failed: out of memory \(error 2\)"):
        driver.allocate(1 << 41, DEVICE)
    with pytest.raises(RuntimeError, match="hipMemGetAllocationGranularity failed: invalid argument"):
        driver.allocate(1, DEVICE + 1)
    with pytest.raises(RuntimeError, match="hipMemImportFromShareableHandle failed"):
        driver.open(12345, STEP, DEVICE)


def test_an_old_driver_is_an_error_and_so_is_none() -> None:
    with pytest.raises(RuntimeError, match="this driver has no hipMemGetAllocationGranularity"):
        Driver("libc.so.6", "hip", by_value=True).allocate(1, 0)
    with pytest.raises(RuntimeError, match="cannot be loaded"):
        Driver("libno-such-driver.so", "cu", by_value=True)
