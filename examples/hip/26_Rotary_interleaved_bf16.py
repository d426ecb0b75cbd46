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
using bf16s = __bf16 __attribute__((ext_vector_type(kWidth)));

// A block has all heads of one position: they share the position's row of the tables.
template <int kPairs>
__global__ void __launch_bounds__(kThreads)
rotary_interleaved(const __bf16* __restrict__ x, const __bf16* __restrict__ cos, const __bf16* __restrict__ sin,
                   __bf16* __restrict__ out, unsigned pairs, unsigned half) {
    const int64_t row = (static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x) * pairs * 2;
    const int64_t angle = static_cast<int64_t>(blockIdx.x) * half;
    for (unsigned pair = threadIdx.x * kPairs; pair < pairs; pair += kThreads * kPairs) {
        const unsigned column = pair % half;
        const bf16s<2 * kPairs> v = *reinterpret_cast<const bf16s<2 * kPairs>*>(x + row + 2 * pair);
        const bf16s<kPairs> c = *reinterpret_cast<const bf16s<kPairs>*>(cos + angle + column);
        const bf16s<kPairs> s = *reinterpret_cast<const bf16s<kPairs>*>(sin + angle + column);
        bf16s<2 * kPairs> rotated;
#pragma unroll
        for (int k = 0; k < kPairs; ++k) {
            const float even = static_cast<float>(v[2 * k]), odd = static_cast<float>(v[2 * k + 1]);
            const float cosine = static_cast<float>(c[k]), sine = static_cast<float>(s[k]);
            rotated[2 * k] = static_cast<__bf16>(even * cosine - odd * sine);
            rotated[2 * k + 1] = static_cast<__bf16>(odd * cosine + even * sine);
        }
        *reinterpret_cast<bf16s<2 * kPairs>*>(out + row + 2 * pair) = rotated;
    }
}

}  // namespace

hipError_t launch_rotary_interleaved(const void* x, const void* cos, const void* sin, void* out, unsigned batch,
                                     unsigned positions, unsigned pairs, unsigned half, hipStream_t stream) {
    if (batch == 0 || positions == 0 || pairs == 0) return hipSuccess;
    auto* kernel = half % 4 == 0 ? rotary_interleaved<4> : rotary_interleaved<1>;
    kernel<<<dim3(positions, batch), dim3(kThreads), 0, stream>>>(
        static_cast<const __bf16*>(x), static_cast<const __bf16*>(cos), static_cast<const __bf16*>(sin),
        static_cast<__bf16*>(out), pairs, half);
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

hipError_t launch_rotary_interleaved(const void* x, const void* cos, const void* sin, void* out, unsigned batch,
                                     unsigned positions, unsigned pairs, unsigned half, hipStream_t stream);

static void check(const at::Tensor& t, at::ScalarType dtype, const char* name) {
    TORCH_CHECK(t.is_cuda() && t.scalar_type() == dtype && t.is_contiguous(), name,
                " must be a contiguous GPU tensor of dtype ", dtype);
    TORCH_CHECK(reinterpret_cast<uintptr_t>(t.data_ptr()) % 16 == 0, name, " must be aligned to 16 bytes");
}

at::Tensor rotary_interleaved(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
    check(x, at::kBFloat16, "x");
    check(cos, at::kBFloat16, "cos");
    check(sin, at::kBFloat16, "sin");
    TORCH_CHECK(x.dim() == 4 && cos.dim() == 2 && cos.sizes() == sin.sizes(), "x has 4 dimensions, cos and sin 2");
    TORCH_CHECK(cos.size(0) == x.size(1) && cos.size(1) * 2 == x.size(3), "cos and sin: one element for each pair");
    const int64_t pairs = x.size(2) * cos.size(1);
    TORCH_CHECK(x.size(0) < (1 << 16) && pairs < (int64_t{1} << 30), "too large a batch, or too many heads");
    const c10::cuda::CUDAGuard guard(x.device());
    at::Tensor out = at::empty_like(x);
    const hipError_t error = launch_rotary_interleaved(
        x.data_ptr(), cos.data_ptr(), sin.data_ptr(), out.data_ptr(), static_cast<unsigned>(x.size(0)),
        static_cast<unsigned>(x.size(1)), static_cast<unsigned>(pairs), static_cast<unsigned>(cos.size(1)),
        c10::cuda::getCurrentCUDAStream());
    TORCH_CHECK(error == hipSuccess, "launch failed: ", hipGetErrorString(error));
    return out;
}
"""

extension = load_inline(
    name="rotary_interleaved_bf16_hip",
    cpp_sources=[CPP_SOURCE],
    cuda_sources=[HIP_SOURCE],
    functions=["rotary_interleaved"],
    extra_cflags=["-O2", "-D__HIP_PLATFORM_AMD__=1", "-DUSE_ROCM=1"],
    extra_cuda_cflags=["-O3"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    """Rotates elements 2i and 2i + 1 of each head by the position's angle, in float32, and rounds once."""

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        return extension.rotary_interleaved(x, cos, sin)
