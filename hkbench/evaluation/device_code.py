"""The evaluator's own kernels on a GPU, compiled while the process runs by the compiler that torch brings along.

One source for both makers: NVRTC (libnvrtc) and HIPRTC (libhiprtc) have the same functions under two prefixes, and so
have the calls that load and launch what they compile ("Module Management" in the CUDA driver API and in the HIP API).
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_size_t, c_uint, c_void_p
from functools import cache
from pathlib import Path

import torch

from hkbench.protocol import device_memory
from hkbench.protocol.gate import MAX_DIMS

#: `stamp` writes the device's clock. `take` gathers `count` elements of `item` bytes into contiguous memory. `place`
#: has the address of the first, one of another process, and the strides of up to MAX_DIMS dimensions, whose sizes
#: are `shape` (a missing dimension has size 1). `table` has the number of its rows and, three words on, rows of (first
#: address there, bytes, where that lies here); while it is read, rows may be added, and lose their bytes.
#: `missing` counts tensors that lie in no row. What the other process writes to `place` meanwhile can make an answer
#: wrong, but not have memory read that is not in the table: every thread checks what it has read.
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
template <typename T>
__device__ void gather(
    const char* from, const u64* strides, const u64* shape, u64 count, u64 first, u64 step, void* to) {
    for (u64 i = first; i < count; i += step) {
        u64 rest = i, at = 0;
        for (int d = DIMS - 1; d >= 0; --d) {
            at += rest % shape[d] * strides[d];
            rest /= shape[d];
        }
        ((T*)to)[i] = ((const T*)from)[at];
    }
}
extern "C" __global__ void take(
    const u64* place, const volatile u64* table, const u64* shape, u64 count, u64 item, char* to, u64* missing) {
    const u64 address = *(const volatile u64*)place, rows = table[0], far = (u64)1 << 40;
    u64 strides[DIMS], sizes[DIMS], span = 1, plain = 1;
    bool contiguous = true, known = true;
    for (int d = DIMS - 1; d >= 0; --d) {
        sizes[d] = shape[d];
        strides[d] = ((const volatile u64*)place)[1 + d];
        known = known && strides[d] <= far / sizes[d];
        span += (sizes[d] - 1) * (known ? strides[d] : 0);
        contiguous = contiguous && (sizes[d] == 1 || strides[d] == plain);
        plain *= sizes[d];
    }
    const u64 bytes = span * item;
    const char* from = nullptr;
    for (u64 row = 1; known && row <= rows; ++row) {
        u64 size = table[3 * row + 1], begin = table[3 * row];
        if (address >= begin && bytes <= size && address - begin <= size - bytes)
            from = (const char*)(table[3 * row + 2] + (address - begin));
    }
    const u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x, step = (u64)gridDim.x * blockDim.x;
    if (!from || (u64)from % item) {
        if (first == 0) *missing += 1;
        return;
    }
    if (contiguous) {
        u64 wide = ((u64)from | (u64)to) % 16 ? 0 : bytes / 16;
        for (u64 i = first; i < wide; i += step) ((uint4*)to)[i] = ((const uint4*)from)[i];
        for (u64 i = 16 * wide + first; i < bytes; i += step) to[i] = from[i];
    }
    else if (item == 1) gather<char>(from, strides, sizes, count, first, step, to);
    else if (item == 2) gather<short>(from, strides, sizes, count, first, step, to);
    else if (item == 4) gather<int>(from, strides, sizes, count, first, step, to);
    else if (item == 8) gather<long long>(from, strides, sizes, count, first, step, to);
    else if (item == 16) gather<double2>(from, strides, sizes, count, first, step, to);
    else if (first == 0) *missing += 1;
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
        """Have a stream write the device's clock, in ticks, to an address."""
        self._launch("stamp", stream, 1, 1, to)

    def take(self, stream: int, *arguments: int) -> None:
        """Have a stream copy a tensor from another process's memory; the arguments are those of `take` in `SOURCE`."""
        self._launch("take", stream, BLOCKS, BLOCK, *arguments)

    def _launch(self, name: str, stream: int, blocks: int, threads: int, *arguments: int) -> None:
        values = [ctypes.c_uint64(value) for value in arguments]
        pointers = (c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        one, none = c_uint(1), c_uint(0)
        grid = (c_uint(blocks), one, one, c_uint(threads), one, one)
        name_of = "LaunchKernel" if torch.version.hip is None else "ModuleLaunchKernel"
        self._driver.call(name_of, self._kernels[name], *grid, none, c_void_p(stream), pointers, c_void_p(None))


@cache
def device_code(device: torch.device) -> DeviceCode:
    """Return the device code of this process. Raises RuntimeError where it cannot be compiled or loaded."""
    return DeviceCode(device)


def _compiled(device: torch.device) -> bytes:
    prefix = "nvrtc" if torch.version.hip is None else "hiprtc"
    library = ctypes.CDLL(str(_library(prefix)))

    def call(name: str, *arguments: object) -> None:
        if code := int(getattr(library, prefix + name)(*arguments)):
            raise RuntimeError(f"{prefix}{name} failed (error {code}): {_log(library, prefix, program)}")

    program = c_void_p()
    call("CreateProgram", byref(program), c_char_p(SOURCE.encode()), c_char_p(b"evaluator.cu"), 0, None, None)
    options = (c_char_p * 2)(_target(device).encode(), f"-DDIMS={MAX_DIMS}".encode())
    call("CompileProgram", program, len(options), options)
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
    """Find the run-time compiler beside torch's own libraries, in the maker's packages or in its installation."""
    here = Path(torch.__file__).parent
    folders = [here / "lib", *sorted(here.parent.glob("nvidia/*/lib"))]
    folders += [Path(home) / "lib64" for home in ("/usr/local/cuda",)] + [Path("/opt/rocm/lib")]
    for folder in folders:
        for path in sorted(folder.glob(f"lib{prefix}*.so*")):
            if "builtins" not in path.name and ".alt." not in path.name:
                return path
    raise RuntimeError(f"lib{prefix} lies neither beside torch nor in {', '.join(str(f) for f in folders[1:])}")
