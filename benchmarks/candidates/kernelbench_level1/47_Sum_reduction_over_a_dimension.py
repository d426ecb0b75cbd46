"""Sum over the middle dimension of a float32 tensor, one thread a column."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "torch::Tensor sum_forward(torch::Tensor x);"

CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

// x: (batch, length, columns); out: (batch, columns). Four running sums, for loads in flight and for precision.
__global__ void sum_kernel(const float* __restrict__ x, float* __restrict__ out, int64_t length, int64_t columns) {
    const int64_t column = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (column >= columns) return;
    const int64_t batch = blockIdx.y;
    const float* in = x + batch * length * columns + column;
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    int64_t row = 0;
    for (; row + 4 <= length; row += 4) {
        for (int k = 0; k < 4; ++k) sums[k] += in[(row + k) * columns];
    }
    for (; row < length; ++row) sums[0] += in[row * columns];
    out[batch * columns + column] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

torch::Tensor sum_forward(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == torch::kFloat32 && x.is_contiguous(), "x: contiguous float32");
    TORCH_CHECK(x.dim() == 3 && x.size(0) <= 65535, "x: three dimensions, the first of at most 65535");
    auto out = torch::empty({x.size(0), 1, x.size(2)}, x.options());
    const dim3 grid(static_cast<unsigned>((x.size(2) + 127) / 128), static_cast<unsigned>(x.size(0)));
    sum_kernel<<<grid, 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), out.data_ptr<float>(), x.size(1), x.size(2));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}
"""

extension = load_inline(
    name="sum_forward_extension",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["sum_forward"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        if dim != 1:
            raise ValueError("only the middle one of three dimensions is summed")

    def forward(self, x):
        return extension.sum_forward(x)
