"""The largest errors and the norm of tensors on a GPU in one pass over their memory each.

Operators of PyTorch need some ten passes with float64 copies in between: for outputs of gigabytes that was most of the
time for which a GPU was lent.
"""

from __future__ import annotations

import struct
from functools import cache

import torch

from hkbench.devices.kernels import BLOCK, BLOCKS, DeviceKernels

#: `errors` finds the largest |want - have| and the largest |want - have| / (|want| + scale); equal elements, equal
#: infinities too, have none. `squares` adds up the squares. All in float64. A NaN counts as larger than any number: as
#: whole numbers, the bits of what is not negative are in the order of the values, and NaN's are the largest.
SOURCE = r"""
typedef unsigned long long u64;
#define AT_ONCE 4  // elements of a thread whose loads are under way together
union Bits {
    double value;
    u64 bits;
};
struct Half {
    unsigned short bits;
};
struct Brain {
    unsigned short bits;
};
__device__ double wide(double value) { return value; }
__device__ double wide(float value) { return value; }
__device__ double wide(Half half) {
#ifdef __HIP_PLATFORM_AMD__
    union {
        unsigned short bits;
        _Float16 value;
    } it;
    it.bits = half.bits;
    return (double)it.value;
#else
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half.bits));
    return value;
#endif
}
__device__ double wide(Brain brain) {
    union {
        unsigned bits;
        float value;
    } it;
    it.bits = (unsigned)brain.bits << 16;
    return it.value;
}
__device__ u64 magnitude(double value) {
    Bits it;
    it.value = value;
    return it.bits & 0x7fffffffffffffffull;
}
__device__ u64 larger(u64 a, u64 b) { return a > b ? a : b; }
struct Largest {
    double scale;
    u64 error, ratio;
    __device__ void look(double want, double have) {
        if (want == have) return;
        const double off = want - have;
        Bits size;
        size.bits = magnitude(want);
        error = larger(error, magnitude(off));
        ratio = larger(ratio, magnitude(off / (size.value + scale)));
    }
};
template <typename Want, typename Have>
__device__ void compare(const void* wants, const void* haves, u64 count, u64 first, u64 step, Largest* found) {
    const Want* want = (const Want*)wants;
    const Have* have = (const Have*)haves;
    u64 i = first;
    for (; i + (AT_ONCE - 1) * step < count; i += AT_ONCE * step) {
        Want w[AT_ONCE];
        Have h[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
            w[k] = want[i + k * step];
            h[k] = have[i + k * step];
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) found->look(wide(w[k]), wide(h[k]));
    }
    for (; i < count; i += step) found->look(wide(want[i]), wide(have[i]));
}
template <typename Want>
__device__ void compare_by(
    const void* want, const void* have, u64 kind, u64 count, u64 first, u64 step, Largest* found) {
    if (kind == 0) compare<Want, double>(want, have, count, first, step, found);
    else if (kind == 1) compare<Want, float>(want, have, count, first, step, found);
    else if (kind == 2) compare<Want, Half>(want, have, count, first, step, found);
    else compare<Want, Brain>(want, have, count, first, step, found);
}
extern "C" __global__ void errors(
    const void* want, u64 want_kind, const void* have, u64 have_kind, u64 count, u64 scale, u64* largest) {
    __shared__ u64 parts[2][BLOCK];
    const u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x, step = (u64)gridDim.x * blockDim.x;
    Bits rms;
    rms.bits = scale;
    Largest found = {rms.value, 0, 0};
    if (want_kind == 0) compare_by<double>(want, have, have_kind, count, first, step, &found);
    else if (want_kind == 1) compare_by<float>(want, have, have_kind, count, first, step, &found);
    else if (want_kind == 2) compare_by<Half>(want, have, have_kind, count, first, step, &found);
    else compare_by<Brain>(want, have, have_kind, count, first, step, &found);
    parts[0][threadIdx.x] = found.error;
    parts[1][threadIdx.x] = found.ratio;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half)
            for (int which = 0; which < 2; ++which)
                parts[which][threadIdx.x] = larger(parts[which][threadIdx.x], parts[which][threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        for (int which = 0; which < 2; ++which) atomicMax(&largest[which], parts[which][0]);
}
template <typename T>
__device__ double summed(const void* values, u64 count, u64 first, u64 step) {
    const T* from = (const T*)values;
    double sum = 0.0;
    u64 i = first;
    for (; i + (AT_ONCE - 1) * step < count; i += AT_ONCE * step) {
        T part[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) part[k] = from[i + k * step];
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) sum += wide(part[k]) * wide(part[k]);
    }
    for (; i < count; i += step) sum += wide(from[i]) * wide(from[i]);
    return sum;
}
extern "C" __global__ void squares(const void* from, u64 kind, u64 count, double* total) {
    __shared__ double parts[BLOCK];
    const u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x, step = (u64)gridDim.x * blockDim.x;
    double sum;
    if (kind == 0) sum = summed<double>(from, count, first, step);
    else if (kind == 1) sum = summed<float>(from, count, first, step);
    else if (kind == 2) sum = summed<Half>(from, count, first, step);
    else sum = summed<Brain>(from, count, first, step);
    parts[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) total[blockIdx.x] = parts[0];
}
"""
KINDS = {torch.float64: 0, torch.float32: 1, torch.float16: 2, torch.bfloat16: 3}


def covers(*tensors: torch.Tensor) -> bool:
    """Return whether these tensors have elements of floating types and lie on a GPU for which this can be compiled."""
    alike = all(one.device.type == "cuda" and one.dtype in KINDS and one.numel() for one in tensors)
    return alike and _kernels(tensors[0].device) is not None


def largest_errors(want: torch.Tensor, have: torch.Tensor, scale: float) -> tuple[float, float]:
    """Return the largest |want - have| and the largest |want - have| / (|want| + scale), NaN where there is one."""
    want, have = want.reshape(-1), have.reshape(-1)
    found = torch.zeros(2, dtype=torch.int64, device=want.device)
    (scale_bits,) = struct.unpack("<Q", struct.pack("<d", scale))
    _launch("errors", want.device, *_place(want), *_place(have), want.numel(), scale_bits, found.data_ptr())
    error, ratio = found.view(torch.float64).tolist()
    return error, ratio


def norm(values: torch.Tensor) -> float:
    """Return the 2-norm."""
    values = values.reshape(-1)
    sums = torch.zeros(BLOCKS, dtype=torch.float64, device=values.device)
    _launch("squares", values.device, *_place(values), values.numel(), sums.data_ptr())
    return float(sums.sum().sqrt())


def _place(values: torch.Tensor) -> tuple[int, int]:
    return values.data_ptr(), KINDS[values.dtype]


def _launch(name: str, device: torch.device, *arguments: int) -> None:
    code = _kernels(device)
    assert code is not None
    code.launch(name, torch.cuda.current_stream(device).cuda_stream, BLOCKS, BLOCK, *arguments)


@cache
def _kernels(device: torch.device) -> DeviceKernels | None:
    """Compile them, once in a process; None where that fails: PyTorch's operators find the same, in more passes."""
    try:
        return DeviceKernels(device, SOURCE, ("errors", "squares"), {"BLOCK": BLOCK})
    except RuntimeError:
        return None
