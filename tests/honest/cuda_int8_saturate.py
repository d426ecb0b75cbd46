"""int8 in and out, four to a word, by the video instruction for saturated sums.

problem: honest_saturate
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
__global__ __launch_bounds__(256) void saturate(const unsigned* __restrict__ a, const unsigned* __restrict__ b,
                                                unsigned* __restrict__ out, int64_t words) {
  const int64_t i = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (i < words) out[i] = __vaddss4(a[i], b[i]);
}

const char* launch(
    uint64_t a, uint64_t b, uint64_t out,
    int64_t count, uint64_t stream_at) {
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(stream_at);
  const int64_t words = count / 4;
  saturate<<<unsigned((words + 255) / 256), 256, 0, stream>>>(
      reinterpret_cast<const unsigned*>(a), reinterpret_cast<const unsigned*>(b),
      reinterpret_cast<unsigned*>(out), words);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
"""

BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
#include <stdexcept>

const char* launch(
    uint64_t a, uint64_t b, uint64_t out,
    int64_t count, uint64_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("launch", [](
    uint64_t a, uint64_t b, uint64_t out,
    int64_t count, uint64_t stream) {
    if (const char* error = launch(a, b, out, count, stream)) throw std::runtime_error(error);
  });
}
"""

extension = load_inline(
    name="cuda_int8_saturate",
    cpp_sources=BINDING,
    cuda_sources=CUDA,
    no_implicit_headers=True,
    extra_cuda_cflags=["-O3"],
)


def stream():
    return torch.cuda.current_stream().cuda_stream


class ModelNew(nn.Module):
    def forward(self, a, b):
        assert a.numel() % 4 == 0
        out = torch.empty_like(a)
        extension.launch(a.data_ptr(), b.data_ptr(), out.data_ptr(), a.numel(), stream())
        return out
