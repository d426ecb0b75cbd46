import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Device code only: without torch's headers the compiler is done in a second or two.
HIP_SOURCE = r"""
#include <cstdint>
#include <hip/hip_runtime.h>

namespace {

constexpr int kThreads = 256;

template <int kWidth>
using floats = float __attribute__((ext_vector_type(kWidth)));

// A head's sequence of positions has one pair of values for each element of the tables, in the tables' order.
template <int kWidth>
__global__ void __launch_bounds__(kThreads)
rotary_embedding(const float* __restrict__ x, const float* __restrict__ cos, const float* __restrict__ sin,
                 float* __restrict__ out, unsigned pairs, unsigned half) {
    const unsigned pair = (blockIdx.y * kThreads + threadIdx.x) * kWidth;
    if (pair >= pairs) return;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * pairs * 2 + pair / half * half * 2 + pair % half;
    const floats<kWidth> a = *reinterpret_cast<const floats<kWidth>*>(x + first);
    const floats<kWidth> b = *reinterpret_cast<const floats<kWidth>*>(x + first + half);
    const floats<kWidth> c = *reinterpret_cast<const floats<kWidth>*>(cos + pair);
    const floats<kWidth> s = *reinterpret_cast<const floats<kWidth>*>(sin + pair);
    *reinterpret_cast<floats<kWidth>*>(out + first) = a * c - b * s;
    *reinterpret_cast<floats<kWidth>*>(out + first + half) = b * c + a * s;
}

template <int kWidth>
void launch(const float* x, const float* cos, const float* sin, float* out, int64_t heads, unsigned pairs,
            unsigned half, hipStream_t stream) {
    const unsigned per_block = kThreads * kWidth;
    const dim3 blocks(static_cast<unsigned>(heads), (pairs + per_block - 1) / per_block);
    rotary_embedding<kWidth><<<blocks, dim3(kThreads), 0, stream>>>(x, cos, sin, out, pairs, half);
}

}  // namespace

hipError_t launch_rotary_embedding(const float* x, const float* cos, const float* sin, float* out, int64_t heads,
                                   unsigned pairs, unsigned half, hipStream_t stream) {
    if (heads == 0 || pairs == 0) return hipSuccess;
    if (half % 4 == 0) launch<4>(x, cos, sin, out, heads, pairs, half, stream);
    else launch<1>(x, cos, sin, out, heads, pairs, half, stream);
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

hipError_t launch_rotary_embedding(const float* x, const float* cos, const float* sin, float* out, int64_t heads,
                                   unsigned pairs, unsigned half, hipStream_t stream);

static void check(const at::Tensor& t, at::ScalarType dtype, const char* name) {
    TORCH_CHECK(t.is_cuda() && t.scalar_type() == dtype && t.is_contiguous(), name,
                " must be a contiguous GPU tensor of dtype ", dtype);
    TORCH_CHECK(reinterpret_cast<uintptr_t>(t.data_ptr()) % 16 == 0, name, " must be aligned to 16 bytes");
}

at::Tensor rotary_embedding(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
    check(x, at::kFloat, "x");
    check(cos, at::kFloat, "cos");
    check(sin, at::kFloat, "sin");
    TORCH_CHECK(x.dim() == 4 && cos.dim() == 2 && cos.sizes() == sin.sizes(), "x has 4 dimensions, cos and sin 2");
    TORCH_CHECK(cos.size(0) == x.size(2) && cos.size(1) * 2 == x.size(3), "cos and sin: one element for each pair");
    TORCH_CHECK(cos.numel() < (int64_t{1} << 23), "the tables are too large for one grid");
    const c10::cuda::CUDAGuard guard(x.device());
    at::Tensor out = at::empty_like(x);
    const hipError_t error = launch_rotary_embedding(
        x.data_ptr<float>(), cos.data_ptr<float>(), sin.data_ptr<float>(), out.data_ptr<float>(), x.size(0) * x.size(1),
        static_cast<unsigned>(cos.numel()), static_cast<unsigned>(cos.size(1)), c10::cuda::getCurrentCUDAStream());
    TORCH_CHECK(error == hipSuccess, "launch failed: ", hipGetErrorString(error));
    return out;
}
"""

extension = load_inline(
    name="rotary_embedding_fp32_hip",
    cpp_sources=[CPP_SOURCE],
    cuda_sources=[HIP_SOURCE],
    functions=["rotary_embedding"],
    extra_cflags=["-O2", "-D__HIP_PLATFORM_AMD__=1", "-DUSE_ROCM=1"],
    extra_cuda_cflags=["-O3"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    """Rotates the halves of each head by its position's angle: one thread has four pairs where the width allows it."""

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        return extension.rotary_embedding(x, cos, sin)
