"""derived weights: the transposed weight is kept and rebuilt when the parameter's version or place changes.

problem: honest_linear
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
// Eight rows by one column a thread; neighbours read neighbouring columns of the packed weight.
__global__ __launch_bounds__(128) void gemm(const float* __restrict__ x, const float* __restrict__ packed,
                                            const float* __restrict__ bias, float* __restrict__ out, int m, int n,
                                            int k) {
  const int column = blockIdx.x * 128 + threadIdx.x, first = blockIdx.y * 8;
  if (column >= n) return;
  float sum[8] = {};
  for (int p = 0; p < k; ++p) {
    const float w = packed[int64_t(p) * n + column];
    #pragma unroll
    for (int r = 0; r < 8; ++r) sum[r] += (first + r < m ? x[int64_t(first + r) * k + p] : 0.0f) * w;
  }
  #pragma unroll
  for (int r = 0; r < 8; ++r)
    if (first + r < m) out[int64_t(first + r) * n + column] = sum[r] + bias[column];
}

const char* launch(
    uint64_t x, uint64_t packed, uint64_t bias,
    uint64_t out, int m, int n,
    int k, uint64_t stream_at) {
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(stream_at);
  gemm<<<dim3((n + 127) / 128, (m + 7) / 8), 128, 0, stream>>>(
      reinterpret_cast<const float*>(x), reinterpret_cast<const float*>(packed), reinterpret_cast<const float*>(bias),
      reinterpret_cast<float*>(out), m, n, k);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
"""

BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
#include <stdexcept>

const char* launch(
    uint64_t x, uint64_t packed, uint64_t bias,
    uint64_t out, int m, int n,
    int k, uint64_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("launch", [](
    uint64_t x, uint64_t packed, uint64_t bias,
    uint64_t out, int m, int n,
    int k, uint64_t stream) {
    if (const char* error = launch(x, packed, bias, out, m, n, k, stream)) throw std::runtime_error(error);
  });
}
"""

extension = load_inline(
    name="cuda_derived_weight_version",
    cpp_sources=BINDING,
    cuda_sources=CUDA,
    no_implicit_headers=True,
    extra_cuda_cflags=["-O3"],
)


def stream():
    return torch.cuda.current_stream().cuda_stream


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self._packed = None
        self._made_from = None

    def forward(self, x):
        weight = self.linear.weight
        state = (weight.data_ptr(), weight._version)
        if self._made_from != state:
            self._packed = weight.detach().t().contiguous()
            self._made_from = state
        x = x.contiguous()
        out = x.new_empty(x.shape[0], weight.shape[0])
        extension.launch(
            x.data_ptr(),
            self._packed.data_ptr(),
            self.linear.bias.data_ptr(),
            out.data_ptr(),
            x.shape[0],
            *weight.shape,
            stream(),
        )
        return out
