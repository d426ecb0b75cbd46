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
using floats = float __attribute__((ext_vector_type(kWidth)));

template <int kWidth>
__device__ __forceinline__ floats<kWidth> load(const float* from) {
    return *reinterpret_cast<const floats<kWidth>*>(from);
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
__device__ __forceinline__ Normaliser row_normaliser(const float* row, int columns, Normaliser* scratch) {
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
cross_entropy(const float* __restrict__ logits, const int64_t* __restrict__ target, float* __restrict__ out,
              int64_t vocabulary) {
    __shared__ Normaliser scratch[kThreads / kWave];
    const float* row = logits + blockIdx.x * vocabulary;
    const Normaliser total = row_normaliser<kWidth>(row, static_cast<int>(vocabulary), scratch);
    if (threadIdx.x == 0) {
        const int64_t chosen = target[blockIdx.x];
        // torch ignores a target of -100: it costs nothing. No target may make this read outside of the row.
        const bool counts = chosen >= 0 && chosen < vocabulary;
        out[blockIdx.x] = counts ? logf(total.sum) + (total.largest - row[chosen]) : 0.0f;
    }
}

}  // namespace

hipError_t launch_cross_entropy(const float* logits, const int64_t* target, float* out, int64_t tokens,
                                int64_t vocabulary, hipStream_t stream) {
    if (tokens == 0) return hipSuccess;
    auto* kernel = vocabulary % 4 == 0 ? cross_entropy<4> : cross_entropy<1>;
    kernel<<<dim3(static_cast<unsigned>(tokens)), dim3(kThreads), 0, stream>>>(logits, target, out, vocabulary);
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

hipError_t launch_cross_entropy(const float* logits, const int64_t* target, float* out, int64_t tokens,
                                int64_t vocabulary, hipStream_t stream);

static void check(const at::Tensor& t, at::ScalarType dtype, const char* name) {
    TORCH_CHECK(t.is_cuda() && t.scalar_type() == dtype && t.is_contiguous(), name,
                " must be a contiguous GPU tensor of dtype ", dtype);
    TORCH_CHECK(reinterpret_cast<uintptr_t>(t.data_ptr()) % 16 == 0, name, " must be aligned to 16 bytes");
}

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& target) {
    check(logits, at::kFloat, "logits");
    check(target, at::kLong, "target");
    TORCH_CHECK(logits.dim() == 2 && target.dim() == 1 && target.size(0) == logits.size(0), "one target for each row");
    TORCH_CHECK(logits.size(1) < (int64_t{1} << 30), "too large a vocabulary");
    const c10::cuda::CUDAGuard guard(logits.device());
    at::Tensor out = at::empty({logits.size(0)}, logits.options());
    const hipError_t error = launch_cross_entropy(logits.data_ptr<float>(), target.data_ptr<int64_t>(),
                                                  out.data_ptr<float>(), logits.size(0), logits.size(1),
                                                  c10::cuda::getCurrentCUDAStream());
    TORCH_CHECK(error == hipSuccess, "launch failed: ", hipGetErrorString(error));
    return out;
}
"""

extension = load_inline(
    name="cross_entropy_fp32_hip",
    cpp_sources=[CPP_SOURCE],
    cuda_sources=[HIP_SOURCE],
    functions=["cross_entropy"],
    extra_cflags=["-O2", "-D__HIP_PLATFORM_AMD__=1", "-DUSE_ROCM=1"],
    extra_cuda_cflags=["-O3"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    """logsumexp(logits) - logits[target] of each token: a block has one token, and reads its logits once."""

    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return extension.cross_entropy(logits, target)
