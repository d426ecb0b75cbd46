"""a kernel of a few microseconds.

problem: honest_tiny
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
__global__ __launch_bounds__(256) void affine(const float* __restrict__ x, float* __restrict__ out, int64_t count) {
  const int64_t i = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (i < count) out[i] = 2.0f * x[i] + 1.0f;
}

const char* launch(
    uint64_t x, uint64_t out, int64_t count,
    uint64_t stream_at) {
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(stream_at);
  affine<<<unsigned((count + 255) / 256), 256, 0, stream>>>(
      reinterpret_cast<const float*>(x), reinterpret_cast<float*>(out), count);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
"""

BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
#include <stdexcept>

const char* launch(
    uint64_t x, uint64_t out, int64_t count,
    uint64_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("launch", [](
    uint64_t x, uint64_t out, int64_t count,
    uint64_t stream) {
    if (const char* error = launch(x, out, count, stream)) throw std::runtime_error(error);
  });
}
"""

extension = load_inline(
    name="cuda_few_microseconds",
    cpp_sources=BINDING,
    cuda_sources=CUDA,
    no_implicit_headers=True,
    extra_cuda_cflags=["-O3"],
)


def stream():
    return torch.cuda.current_stream().cuda_stream


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        extension.launch(x.data_ptr(), out.data_ptr(), x.numel(), stream())
        return out
