"""The judge's own kernels on a GPU, compiled while the process runs by the compiler that torch brings along.

One source for both makers: NVRTC (libnvrtc) and HIPRTC (libhiprtc) have the same functions under two prefixes, and so
have the calls that load and launch what they compile ("Module Management" in the CUDA driver API and in the HIP API).
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_size_t, c_uint, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import torch

from hkbench.runner import device_memory

#: `stamp` writes the device's clock. `take` copies `bytes` from the address that lies at `place`, an address of another
#: process: `table` has rows of (its first address, bytes, where that lies here). `missing` counts addresses in no row.
SOURCE = r"""
typedef unsigned long long u64;
extern "C" __global__ void stamp(u64* to) {
#ifdef __HIP_PLATFORM_AMD__
    *to = wall_clock64();
#else
    u64 now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    *to = now;
#endif
}
extern "C" __global__ void take(
    const u64* place, const u64* table, u64 rows, u64 bytes, unsigned char* to, u64* missing) {
    u64 address = *(const volatile u64*)place;
    const unsigned char* from = nullptr;
    for (u64 row = 0; row < rows; ++row) {
        u64 begin = table[3 * row], size = table[3 * row + 1];
        if (address >= begin && bytes <= size && address - begin <= size - bytes)
            from = (const unsigned char*)(table[3 * row + 2] + (address - begin));
    }
    u64 number = (u64)blockIdx.x * blockDim.x + threadIdx.x, step = (u64)gridDim.x * blockDim.x;
    if (!from) {
        if (number == 0) *missing += 1;
        return;
    }
    u64 wide = ((u64)from | (u64)to) % 16 ? 0 : bytes / 16;
    for (u64 i = number; i < wide; i += step) ((uint4*)to)[i] = ((const uint4*)from)[i];
    for (u64 i = 16 * wide + number; i < bytes; i += step) to[i] = from[i];
}
"""
BLOCK = 256
BLOCKS = 1024
#: Nanoseconds of a tick of `stamp`: %globaltimer counts nanoseconds; wall_clock64 counts at 100 MHz on gfx942 and
#: gfx950 (HIP, hipDeviceAttributeWallClockRate, asked of the device).
NANOSECONDS = 1.0
_WALL_CLOCK_RATE = 10017  #: hipDeviceAttributeWallClockRate of HIP 6 and 7 (hip_runtime_api.h), in kHz


class DeviceCode:
    """The kernels of `SOURCE`, loaded on the current device. Every failure is a RuntimeError that names its reason."""

    def __init__(self, device: torch.device) -> None:
        self._driver = device_memory.driver()
        torch.zeros(1, device=device)  # the driver's calls do not make a context
        image = _compiled(device)
        module = c_void_p()
        self._driver.call("ModuleLoadData", byref(module), image)
        self._kernels = {name: self._function(module, name) for name in ("stamp", "take")}
        self.tick_seconds = self._tick(device)

    def _function(self, module: c_void_p, name: str) -> c_void_p:
        function = c_void_p()
        self._driver.call("ModuleGetFunction", byref(function), module, c_char_p(name.encode()))
        return function

    def _tick(self, device: torch.device) -> float:
        if torch.version.hip is None:
            return NANOSECONDS * 1e-9
        rate = ctypes.c_int()
        self._driver.call("DeviceGetAttribute", byref(rate), ctypes.c_int(_WALL_CLOCK_RATE), device.index or 0)
        return 1.0 / (rate.value * 1e3)

    def stamp(self, stream: int, to: int) -> None:
        """Has a stream write the device's clock, in ticks, to an address."""
        self._launch("stamp", stream, 1, 1, to)

    def take(self, stream: int, place: int, table: int, rows: int, size: int, to: int, missing: int) -> None:
        """Has a stream copy `size` bytes of another process's memory; see `SOURCE`. All but sizes are addresses."""
        self._launch("take", stream, BLOCKS, BLOCK, place, table, rows, size, to, missing)

    def _launch(self, name: str, stream: int, blocks: int, threads: int, *arguments: int) -> None:
        values = [ctypes.c_uint64(value) for value in arguments]
        pointers = (c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        one, none = c_uint(1), c_uint(0)
        grid = (c_uint(blocks), one, one, c_uint(threads), one, one)
        name_of = "LaunchKernel" if torch.version.hip is None else "ModuleLaunchKernel"
        self._driver.call(name_of, self._kernels[name], *grid, none, c_void_p(stream), pointers, c_void_p(None))


@cache
def device_code(device: torch.device) -> DeviceCode:
    """That of this process. Raises RuntimeError where it cannot be compiled or loaded."""
    return DeviceCode(device)


def _compiled(device: torch.device) -> bytes:
    prefix = "nvrtc" if torch.version.hip is None else "hiprtc"
    library = ctypes.CDLL(str(_library(prefix)))

    def call(name: str, *arguments: Any) -> None:
        if code := int(getattr(library, prefix + name)(*arguments)):
            raise RuntimeError(f"{prefix}{name} failed (error {code}): {_log(library, prefix, program)}")

    program = c_void_p()
    call("CreateProgram", byref(program), c_char_p(SOURCE.encode()), c_char_p(b"judge.cu"), 0, None, None)
    options = (c_char_p * 1)(_target(device).encode())
    call("CompileProgram", program, 1, options)
    size, kind = c_size_t(), "PTX" if prefix == "nvrtc" else "Code"
    call(f"Get{kind}Size", program, byref(size))
    image = ctypes.create_string_buffer(size.value)
    call(f"Get{kind}", program, image)
    return image.raw


def _log(library: ctypes.CDLL, prefix: str, program: c_void_p) -> str:
    size = c_size_t()
    if not program or getattr(library, f"{prefix}GetProgramLogSize")(program, byref(size)):
        return "no log"
    log = ctypes.create_string_buffer(size.value)
    getattr(library, f"{prefix}GetProgramLog")(program, log)
    return log.value.decode(errors="replace").strip()[:1000]


def _target(device: torch.device) -> str:
    if torch.version.hip is not None:
        return f"--offload-arch={torch.cuda.get_device_properties(device).gcnArchName}"
    major, minor = torch.cuda.get_device_capability(device)
    return f"--gpu-architecture=compute_{major}{minor}"


def _library(prefix: str) -> Path:
    """The run-time compiler that lies beside torch's own libraries, in the maker's packages or in its installation."""
    here = Path(torch.__file__).parent
    folders = [here / "lib", *sorted(here.parent.glob("nvidia/*/lib"))]
    folders += [Path(home) / "lib64" for home in ("/usr/local/cuda",)] + [Path("/opt/rocm/lib")]
    for folder in folders:
        for path in sorted(folder.glob(f"lib{prefix}*.so*")):
            if "builtins" not in path.name and ".alt." not in path.name:
                return path
    raise RuntimeError(f"lib{prefix} lies neither beside torch nor in {', '.join(str(f) for f in folders[1:])}")
