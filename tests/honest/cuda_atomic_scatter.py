"""index_add by float atomics in global memory, as PyTorch's own: not repeatable to the last bit.

problem: honest_scatter
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
__global__ __launch_bounds__(256) void scatter(const int64_t* __restrict__ index, const float* __restrict__ x,
                                               float* __restrict__ out, int64_t count, int columns) {
  const int64_t i = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (i >= count) return;
  const int64_t row = i / columns;
  atomicAdd(out + index[row] * columns + i % columns, x[i]);
}

const char* launch(
    uint64_t index, uint64_t x, uint64_t out,
    int64_t rows, int columns, uint64_t stream_at) {
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(stream_at);
  const int64_t count = rows * columns;
  scatter<<<unsigned((count + 255) / 256), 256, 0, stream>>>(
      reinterpret_cast<const int64_t*>(index), reinterpret_cast<const float*>(x),
      reinterpret_cast<float*>(out), count, columns);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
"""

BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
#include <stdexcept>

const char* launch(
    uint64_t index, uint64_t x, uint64_t out,
    int64_t rows, int columns, uint64_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("launch", [](
    uint64_t index, uint64_t x, uint64_t out,
    int64_t rows, int columns, uint64_t stream) {
    if (const char* error = launch(index, x, out, rows, columns, stream)) throw std::runtime_error(error);
  });
}
"""

extension = load_inline(
    name="cuda_atomic_scatter",
    cpp_sources=BINDING,
    cuda_sources=CUDA,
    no_implicit_headers=True,
    extra_cuda_cflags=["-O3"],
)


def stream():
    return torch.cuda.current_stream().cuda_stream


class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, index, x):
        out = x.new_zeros(self.bins, x.shape[1])
        extension.launch(index.data_ptr(), x.data_ptr(), out.data_ptr(), *x.shape, stream())
        return out
