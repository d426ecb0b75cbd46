"""The evaluator's own kernels on a GPU: its clock, and what takes outputs from a runner's memory."""

from __future__ import annotations

import ctypes
import math
import secrets
from ctypes import byref
from functools import cache

import torch

from hkbench.devices.kernels import BLOCK, BLOCKS, DeviceKernels
from hkbench.protocol import device_memory
from hkbench.protocol.gate import MAX_DIMS

#: `stamp` writes the device's clock. `take` gathers `count` elements of `item` bytes into contiguous memory. `place`
#: has the address of the first, one of another process, and the strides of up to MAX_DIMS dimensions, whose sizes
#: are `shape` (a missing dimension has size 1). `table` has the number of its rows and, three words on, rows of (first
#: address there, bytes, where that lies here); while it is read, rows may be added, and lose their bytes.
#: `missing` counts tensors that lie in no row. What the other process writes to `place` meanwhile can make an answer
#: wrong, but not have memory read that is not in the table: every thread checks what it has read. Pieces of PIECE bytes
#: are copied in the order `first`, `first + stride`, ... (modulo their number, to which `stride` is coprime). It is
#: drawn for each call: a copy engine works beside the kernel, and what it had left for last would else be read last.
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
__device__ void gather(const char* from, const u64* strides, const u64* shape, u64 begin, u64 end, void* to) {
    for (u64 i = begin / sizeof(T) + threadIdx.x; i < end / sizeof(T); i += blockDim.x) {
        u64 rest = i, at = 0;
        for (int d = DIMS - 1; d >= 0; --d) {
            at += rest % shape[d] * strides[d];
            rest /= shape[d];
        }
        ((T*)to)[i] = ((const T*)from)[at];
    }
}
__device__ void copy(const char* from, u64 begin, u64 end, char* to) {
    const u64 wide = ((u64)from | (u64)to) % 16 ? begin : end / 16 * 16;
    for (u64 i = begin / 16 + threadIdx.x; i < wide / 16; i += blockDim.x) ((uint4*)to)[i] = ((const uint4*)from)[i];
    for (u64 i = wide + threadIdx.x; i < end; i += blockDim.x) to[i] = from[i];
}
extern "C" __global__ void take(
    const u64* place, const volatile u64* table, const u64* shape, u64 count, u64 item, char* to, u64* missing,
    u64 first, u64 stride) {
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
    const bool sized = item == 1 || item == 2 || item == 4 || item == 8 || item == 16;
    if (!from || (u64)from % item || !(contiguous || sized)) {
        if (blockIdx.x == 0 && threadIdx.x == 0) *missing += 1;
        return;
    }
    const u64 all = count * item, pieces = (all + PIECE - 1) / PIECE, step = gridDim.x % pieces * stride % pieces;
    u64 piece = (first + blockIdx.x % pieces * stride) % pieces;
    for (u64 n = blockIdx.x; n < pieces; n += gridDim.x) {
        const u64 begin = piece * PIECE, end = begin + PIECE < all ? begin + PIECE : all;
        if (contiguous) copy(from, begin, end, to);
        else if (item == 1) gather<char>(from, strides, sizes, begin, end, to);
        else if (item == 2) gather<short>(from, strides, sizes, begin, end, to);
        else if (item == 4) gather<int>(from, strides, sizes, begin, end, to);
        else if (item == 8) gather<long long>(from, strides, sizes, begin, end, to);
        else gather<double2>(from, strides, sizes, begin, end, to);
        piece += step;
        if (piece >= pieces) piece -= pieces;
    }
}
"""
#: Nanoseconds of a tick of `stamp`: %globaltimer counts nanoseconds; wall_clock64 counts at 100 MHz on gfx942 and
#: gfx950 (HIP, hipDeviceAttributeWallClockRate, asked of the device).
NANOSECONDS = 1.0
PIECE = 4096  #: bytes, a multiple of every item's
_WALL_CLOCK_RATE = 10017  #: hipDeviceAttributeWallClockRate of HIP 6 and 7 (hip_runtime_api.h), in kHz


class DeviceCode:
    """The kernels of `SOURCE`, loaded on the current device. Every failure is a RuntimeError that names its reason."""

    def __init__(self, device: torch.device) -> None:
        self._kernels = DeviceKernels(device, SOURCE, ("stamp", "take"), {"DIMS": MAX_DIMS, "PIECE": PIECE})
        self.tick_seconds = _tick(device)

    def stamp(self, stream: int, to: int) -> None:
        """Have a stream write the device's clock, in ticks, to an address."""
        self._kernels.launch("stamp", stream, 1, 1, to)

    def take(self, stream: int, place: int, table: int, shape: int, to: torch.Tensor, missing: int) -> None:
        """Have a stream copy a tensor from another process's memory, in an order that is drawn.

        `place`, `table`, `shape` and `missing` are addresses on the device; see `SOURCE`.
        """
        tensor = to.numel(), to.element_size(), to.data_ptr()
        self._kernels.launch(
            "take", stream, BLOCKS, BLOCK, place, table, shape, *tensor, missing, *drawn_order(to.nbytes)
        )


def drawn_order(size: int) -> tuple[int, int]:
    """Draw the order in which the pieces of a tensor of `size` bytes are copied: the first one, and the stride."""
    pieces = -(-size // PIECE)
    stride = 1 + secrets.randbelow(pieces)
    while math.gcd(stride, pieces) > 1:
        stride = 1 + secrets.randbelow(pieces)
    return secrets.randbelow(pieces), stride


def _tick(device: torch.device) -> float:
    if torch.version.hip is None:
        return NANOSECONDS * 1e-9
    rate = ctypes.c_int()
    driver = device_memory.driver()
    driver.call("DeviceGetAttribute", byref(rate), ctypes.c_int(_WALL_CLOCK_RATE), device.index or 0)
    return 1.0 / (rate.value * 1e3)


@cache
def device_code(device: torch.device) -> DeviceCode:
    """Return the device code of this process. Raises RuntimeError where it cannot be compiled or loaded."""
    return DeviceCode(device)
