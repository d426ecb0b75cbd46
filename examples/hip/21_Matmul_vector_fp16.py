import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Device code only, in HIP: no torch header here, so the compiler is done in a second or two.
HIP_SOURCE = r"""
#include <cstdint>
#include <hip/hip_runtime.h>

namespace {

constexpr int kWave = 64;
constexpr int kThreads = 256;  // four waves, a row each
constexpr int kWidth = 8;      // values in 16 bytes

typedef _Float16 halfx8 __attribute__((ext_vector_type(8)));

__global__ void __launch_bounds__(kThreads)
matmul_vector(const _Float16* __restrict__ matrix, const _Float16* __restrict__ vector, _Float16* __restrict__ out,
              int rows, int columns, bool aligned) {
    const int row = blockIdx.x * (kThreads / kWave) + threadIdx.x / kWave;
    if (row >= rows) return;
    const int lane = threadIdx.x % kWave;
    const _Float16* __restrict__ from = matrix + static_cast<int64_t>(row) * columns;
    // What is not aligned, and the end of a row, is read value by value.
    const int in_vectors = aligned ? columns / kWidth * kWidth : 0;

    float sum = 0.0f;
    for (int i = lane * kWidth; i < in_vectors; i += kWave * kWidth) {
        const halfx8 x = *reinterpret_cast<const halfx8*>(from + i);
        const halfx8 y = *reinterpret_cast<const halfx8*>(vector + i);
#pragma unroll
        for (int c = 0; c < kWidth; ++c) sum = fmaf(static_cast<float>(x[c]), static_cast<float>(y[c]), sum);
    }
    for (int i = in_vectors + lane; i < columns; i += kWave)
        sum = fmaf(static_cast<float>(from[i]), static_cast<float>(vector[i]), sum);
#pragma unroll
    for (int offset = kWave / 2; offset > 0; offset /= 2) sum += __shfl_xor(sum, offset, kWave);
    if (lane == 0) out[row] = static_cast<_Float16>(sum);
}

}  // namespace

hipError_t launch_matmul_vector(const void* matrix, const void* vector, void* out, int rows, int columns,
                                hipStream_t stream) {
    if (rows == 0) return hipSuccess;
    const bool aligned =
        (reinterpret_cast<uintptr_t>(matrix) | reinterpret_cast<uintptr_t>(vector)) % 16 == 0 && columns % kWidth == 0;
    constexpr int kRows = kThreads / kWave;
    matmul_vector<<<dim3((rows + kRows - 1) / kRows), dim3(kThreads), 0, stream>>>(
        static_cast<const _Float16*>(matrix), static_cast<const _Float16*>(vector), static_cast<_Float16*>(out), rows,
        columns, aligned);
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

hipError_t launch_matmul_vector(const void* matrix, const void* vector, void* out, int rows, int columns,
                                hipStream_t stream);

static void check(const at::Tensor& t, at::ScalarType dtype, int64_t dims, const char* name) {
    TORCH_CHECK(t.is_cuda() && t.scalar_type() == dtype && t.is_contiguous() && t.dim() == dims, name,
                " must be a contiguous GPU tensor of dtype ", dtype, " with ", dims, " dimensions");
}

static void check_launch(hipError_t error) {
    TORCH_CHECK(error == hipSuccess, "launch failed: ", hipGetErrorString(error));
}

at::Tensor matmul_vector(const at::Tensor& matrix, const at::Tensor& vector) {
    check(matrix, at::kHalf, 2, "matrix");
    check(vector, at::kHalf, 1, "vector");
    TORCH_CHECK(matrix.size(1) == vector.size(0), "the vector must have one element a column");
    const c10::cuda::CUDAGuard guard(matrix.device());
    at::Tensor out = at::empty({matrix.size(0)}, matrix.options());
    check_launch(launch_matmul_vector(matrix.data_ptr(), vector.data_ptr(), out.data_ptr(), matrix.size(0),
                                      matrix.size(1), c10::cuda::getCurrentCUDAStream()));
    return out;
}
"""

extension = load_inline(
    name="matmul_vector_fp16_hip",
    cpp_sources=[CPP_SOURCE],
    cuda_sources=[HIP_SOURCE],
    functions=["matmul_vector"],
    extra_cflags=["-O2", "-D__HIP_PLATFORM_AMD__=1", "-DUSE_ROCM=1"],
    extra_cuda_cflags=["-O3"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    """matrix @ vector, a row in a wave."""

    def forward(self, matrix: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
        return extension.matmul_vector(matrix, vector)
