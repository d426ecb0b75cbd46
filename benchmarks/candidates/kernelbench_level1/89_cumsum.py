"""Running sums along the rows of a float32 matrix: one block a row, 2048 elements of it at a time."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "torch::Tensor cumsum_forward(torch::Tensor x);"

CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kThreads = 256;
constexpr int kVectors = 2;  // float4 of a thread at a time

__global__ __launch_bounds__(kThreads) void cumsum_kernel(const float* __restrict__ x, float* __restrict__ out,
                                                          int64_t columns) {
    __shared__ float totals[2][kThreads];
    const int64_t row = blockIdx.x;
    const float4* in = reinterpret_cast<const float4*>(x + row * columns);
    float4* to = reinterpret_cast<float4*>(out + row * columns);
    const int64_t vectors = columns / 4;
    const int thread = threadIdx.x;
    float before = 0.0f;  // the sum of all earlier parts of the row

    for (int64_t part = 0; part < vectors; part += kThreads * kVectors) {
        const int64_t first = part + static_cast<int64_t>(thread) * kVectors;
        float4 v[kVectors];
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < kVectors; ++k) {
            v[k] = first + k < vectors ? in[first + k] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            v[k].x += sum;
            v[k].y += v[k].x;
            v[k].z += v[k].y;
            v[k].w += v[k].z;
            sum = v[k].w;
        }
        // Running sums of the threads' totals; each step reads one array and writes the other.
        int from = 0;
        totals[from][thread] = sum;
        __syncthreads();
        for (int distance = 1; distance < kThreads; distance *= 2) {
            float total = totals[from][thread];
            if (thread >= distance) total += totals[from][thread - distance];
            totals[1 - from][thread] = total;
            from = 1 - from;
            __syncthreads();
        }
        const float offset = before + (thread == 0 ? 0.0f : totals[from][thread - 1]);
        before += totals[from][kThreads - 1];
#pragma unroll
        for (int k = 0; k < kVectors; ++k) {
            if (first + k < vectors) {
                to[first + k] = make_float4(v[k].x + offset, v[k].y + offset, v[k].z + offset, v[k].w + offset);
            }
        }
        __syncthreads();  // the totals have been read
    }
}

torch::Tensor cumsum_forward(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == torch::kFloat32 && x.is_contiguous(), "x: contiguous float32");
    TORCH_CHECK(x.dim() == 2 && x.size(1) % 4 == 0, "x: a matrix whose rows have a multiple of 4 elements");
    auto out = torch::empty_like(x);
    cumsum_kernel<<<static_cast<unsigned>(x.size(0)), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}
"""

extension = load_inline(
    name="cumsum_forward_extension",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["cumsum_forward"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        if dim != 1:
            raise ValueError("only rows are summed")

    def forward(self, x):
        return extension.cumsum_forward(x)
