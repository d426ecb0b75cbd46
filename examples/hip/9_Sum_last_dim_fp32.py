import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Device code only: without torch's headers the compiler is done in a second or two.
HIP_SOURCE = r"""
#include <cstdint>
#include <hip/hip_runtime.h>

namespace {

constexpr int kWave = 64;
constexpr int kThreads = 256;

template <int kWidth>
using floats = float __attribute__((ext_vector_type(kWidth)));

// The sum over the block, in every thread: within each wave of 64 by shuffles, across the waves through LDS.
__device__ __forceinline__ float block_sum(float value, float* scratch) {
#pragma unroll
    for (int offset = kWave / 2; offset > 0; offset /= 2) value += __shfl_xor(value, offset, kWave);
    if (threadIdx.x % kWave == 0) scratch[threadIdx.x / kWave] = value;
    __syncthreads();
    float total = 0.0f;
#pragma unroll
    for (int wave = 0; wave < kThreads / kWave; ++wave) total += scratch[wave];
    return total;
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
sum_last_dim(const float* __restrict__ x, float* __restrict__ out, int columns) {
    __shared__ float scratch[kThreads / kWave];
    const float* row = x + static_cast<int64_t>(blockIdx.x) * columns;
    floats<kWidth> sums = 0.0f;  // a sum for each place of the vector: shorter sums are more exact
    for (int i = threadIdx.x * kWidth; i < columns; i += kThreads * kWidth) {
        sums += *reinterpret_cast<const floats<kWidth>*>(row + i);
    }
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < kWidth; ++c) sum += sums[c];
    const float total = block_sum(sum, scratch);
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}

}  // namespace

hipError_t launch_sum_last_dim(const float* x, float* out, int64_t rows, int columns, hipStream_t stream) {
    if (rows == 0) return hipSuccess;
    auto* kernel = columns % 4 == 0 ? sum_last_dim<4> : sum_last_dim<1>;
    kernel<<<dim3(static_cast<unsigned>(rows)), dim3(kThreads), 0, stream>>>(x, out, columns);
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

hipError_t launch_sum_last_dim(const float* x, float* out, int64_t rows, int columns, hipStream_t stream);

static void check(const at::Tensor& t, at::ScalarType dtype, const char* name) {
    TORCH_CHECK(t.is_cuda() && t.scalar_type() == dtype && t.is_contiguous(), name,
                " must be a contiguous GPU tensor of dtype ", dtype);
    TORCH_CHECK(reinterpret_cast<uintptr_t>(t.data_ptr()) % 16 == 0, name, " must be aligned to 16 bytes");
}

at::Tensor sum_last_dim(const at::Tensor& x) {
    check(x, at::kFloat, "x");
    TORCH_CHECK(x.dim() == 2 && x.size(1) < (int64_t{1} << 30), "x must have two dimensions, and no longer rows");
    const c10::cuda::CUDAGuard guard(x.device());
    at::Tensor out = at::empty({x.size(0)}, x.options());
    const hipError_t error =
        launch_sum_last_dim(x.data_ptr<float>(), out.data_ptr<float>(), x.size(0), static_cast<int>(x.size(1)),
                            c10::cuda::getCurrentCUDAStream());
    TORCH_CHECK(error == hipSuccess, "launch failed: ", hipGetErrorString(error));
    return out;
}
"""

extension = load_inline(
    name="sum_last_dim_fp32_hip",
    cpp_sources=[CPP_SOURCE],
    cuda_sources=[HIP_SOURCE],
    functions=["sum_last_dim"],
    extra_cflags=["-O2", "-D__HIP_PLATFORM_AMD__=1", "-DUSE_ROCM=1"],
    extra_cuda_cflags=["-O3"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    """Sums every row: a block has one row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.sum_last_dim(x)
