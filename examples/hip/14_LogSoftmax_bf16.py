import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Device code only: without torch's headers the compiler is done in a second or two.
HIP_SOURCE = r"""
#include <cfloat>
#include <cstdint>
#include <hip/hip_runtime.h>

namespace {

constexpr int kWave = 64;
constexpr int kThreads = 256;

template <int kWidth>
using bf16s = __bf16 __attribute__((ext_vector_type(kWidth)));
template <int kWidth>
using floats = float __attribute__((ext_vector_type(kWidth)));

template <int kWidth>
__device__ __forceinline__ floats<kWidth> load(const __bf16* from) {
    return __builtin_convertvector(*reinterpret_cast<const bf16s<kWidth>*>(from), floats<kWidth>);
}

// The sum of exp(element - largest) of the elements seen so far, and the largest of them.
struct Normaliser {
    float largest, sum;
};

__device__ __forceinline__ Normaliser join(Normaliser a, Normaliser b) {
    const float largest = fmaxf(a.largest, b.largest);
    return {largest, a.sum * __expf(a.largest - largest) + b.sum * __expf(b.largest - largest)};
}

// The normaliser of a row, in every thread: each reads the row once, and rescales its sum where a larger element comes.
template <int kWidth>
__device__ __forceinline__ Normaliser row_normaliser(const __bf16* row, int columns, Normaliser* scratch) {
    Normaliser mine = {-FLT_MAX, 0.0f};  // finite, so that no difference of two infinities is taken
    for (int i = threadIdx.x * kWidth; i < columns; i += kThreads * kWidth) {
        const floats<kWidth> v = load<kWidth>(row + i);
        float largest = mine.largest;
#pragma unroll
        for (int c = 0; c < kWidth; ++c) largest = fmaxf(largest, v[c]);
        mine = {largest, mine.sum * __expf(mine.largest - largest)};
#pragma unroll
        for (int c = 0; c < kWidth; ++c) mine.sum += __expf(v[c] - largest);
    }
#pragma unroll
    for (int offset = kWave / 2; offset > 0; offset /= 2) {
        mine = join(mine, {__shfl_xor(mine.largest, offset, kWave), __shfl_xor(mine.sum, offset, kWave)});
    }
    if (threadIdx.x % kWave == 0) scratch[threadIdx.x / kWave] = mine;
    __syncthreads();
    Normaliser total = scratch[0];
#pragma unroll
    for (int wave = 1; wave < kThreads / kWave; ++wave) total = join(total, scratch[wave]);
    return total;
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
log_softmax(const __bf16* __restrict__ logits, __bf16* __restrict__ out, int classes) {
    __shared__ Normaliser scratch[kThreads / kWave];
    const int64_t start = static_cast<int64_t>(blockIdx.x) * classes;
    const Normaliser total = row_normaliser<kWidth>(logits + start, classes, scratch);
    const float log_sum = logf(total.sum);
    for (int i = threadIdx.x * kWidth; i < classes; i += kThreads * kWidth) {
        const floats<kWidth> v = load<kWidth>(logits + start + i) - total.largest - log_sum;
        *reinterpret_cast<bf16s<kWidth>*>(out + start + i) = __builtin_convertvector(v, bf16s<kWidth>);
    }
}

}  // namespace

hipError_t launch_log_softmax(const void* logits, void* out, int64_t rows, int classes, hipStream_t stream) {
    if (rows == 0) return hipSuccess;
    auto* kernel = classes % 8 == 0 ? log_softmax<8> : log_softmax<1>;
    kernel<<<dim3(static_cast<unsigned>(rows)), dim3(kThreads), 0, stream>>>(static_cast<const __bf16*>(logits),
                                                                             static_cast<__bf16*>(out), classes);
    return hipGetLastError();
}
"""

# PyTorch's hipify turns the two c10/cuda headers into its c10/hip ones.
CPP_SOURCE = r"""
#include <torch/types.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

hipError_t launch_log_softmax(const void* logits, void* out, int64_t rows, int classes, hipStream_t stream);

static void check(const at::Tensor& t, at::ScalarType dtype, const char* name) {
    TORCH_CHECK(t.is_cuda() && t.scalar_type() == dtype && t.is_contiguous(), name,
                " must be a contiguous GPU tensor of dtype ", dtype);
    TORCH_CHECK(reinterpret_cast<uintptr_t>(t.data_ptr()) % 16 == 0, name, " must be aligned to 16 bytes");
}

at::Tensor log_softmax(const at::Tensor& logits) {
    check(logits, at::kBFloat16, "logits");
    TORCH_CHECK(logits.dim() == 2 && logits.size(1) < (int64_t{1} << 30), "logits must have two dimensions");
    const c10::cuda::CUDAGuard guard(logits.device());
    at::Tensor out = at::empty_like(logits);
    const hipError_t error = launch_log_softmax(logits.data_ptr(), out.data_ptr(), logits.size(0),
                                                static_cast<int>(logits.size(1)), c10::cuda::getCurrentCUDAStream());
    TORCH_CHECK(error == hipSuccess, "launch failed: ", hipGetErrorString(error));
    return out;
}
"""

extension = load_inline(
    name="log_softmax_bf16_hip",
    cpp_sources=[CPP_SOURCE],
    cuda_sources=[HIP_SOURCE],
    functions=["log_softmax"],
    extra_cflags=["-O2", "-D__HIP_PLATFORM_AMD__=1", "-DUSE_ROCM=1"],
    extra_cuda_cflags=["-O3"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    """logits - largest - log(sum(exp(logits - largest))) of each row: a block has one row, and reads it twice."""

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        return extension.log_softmax(logits)
