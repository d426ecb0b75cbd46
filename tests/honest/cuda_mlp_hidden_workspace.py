"""hidden activations in a workspace that is kept; the result is new at each call.

problem: honest_mlp
device: cuda
backend: cuda
outcome: fast|slow
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cuda_runtime.h>
#include <cstdint>
__global__ __launch_bounds__(256) void gemm_kernel(const float* __restrict__ x, const float* __restrict__ w,
                                                   const float* __restrict__ bias, float* __restrict__ out, int m,
                                                   int n, int k, int relu) {
  __shared__ float a[16][17], b[16][17];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
  float sum = 0.0f;
  for (int p = 0; p < k; p += 16) {
    a[ty][tx] = row < m && p + tx < k ? x[int64_t(row) * k + p + tx] : 0.0f;
    const int other = blockIdx.x * 16 + ty;
    b[ty][tx] = other < n && p + tx < k ? w[int64_t(other) * k + p + tx] : 0.0f;
    __syncthreads();
    for (int q = 0; q < 16; ++q) sum += a[ty][q] * b[tx][q];
    __syncthreads();
  }
  if (row < m && column < n) {
    sum += bias[column];
    out[int64_t(row) * n + column] = relu ? fmaxf(sum, 0.0f) : sum;
  }
}

const char* launch(
    uint64_t x, uint64_t w, uint64_t bias,
    uint64_t out, int m, int n,
    int k, int relu, uint64_t stream_at) {
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(stream_at);
  gemm_kernel<<<dim3((n + 15) / 16, (m + 15) / 16), 256, 0, stream>>>(
      reinterpret_cast<const float*>(x), reinterpret_cast<const float*>(w), reinterpret_cast<const float*>(bias),
      reinterpret_cast<float*>(out), m, n, k, relu);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
"""

BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
#include <stdexcept>

const char* launch(
    uint64_t x, uint64_t w, uint64_t bias,
    uint64_t out, int m, int n,
    int k, int relu, uint64_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("launch", [](
    uint64_t x, uint64_t w, uint64_t bias,
    uint64_t out, int m, int n,
    int k, int relu, uint64_t stream) {
    if (const char* error = launch(x, w, bias, out, m, n, k, relu, stream)) throw std::runtime_error(error);
  });
}
"""

extension = load_inline(
    name="cuda_mlp_hidden_workspace",
    cpp_sources=BINDING,
    cuda_sources=CUDA,
    no_implicit_headers=True,
    extra_cuda_cflags=["-O3"],
)


def stream():
    return torch.cuda.current_stream().cuda_stream


def layer(x, linear, out, relu):
    extension.launch(
        x.data_ptr(),
        linear.weight.data_ptr(),
        linear.bias.data_ptr(),
        out.data_ptr(),
        x.shape[0],
        linear.out_features,
        linear.in_features,
        relu,
        stream(),
    )
    return out


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))
        self.hidden = None

    def forward(self, x):
        x = x.contiguous()
        if self.hidden is None or self.hidden.shape[0] != x.shape[0]:
            self.hidden = x.new_empty(x.shape[0], self.net[0].out_features)
        layer(x, self.net[0], self.hidden, 1)
        return layer(self.hidden, self.net[2], torch.empty_like(x), 0)
