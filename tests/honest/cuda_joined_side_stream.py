"""half of the work on a stream of its own, which waits for the current one and is waited for.

problem: honest_affine
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
__device__ __forceinline__ float one(float a, float b) { return fminf(1.0f, fmaxf(-1.0f, 0.5f * a + 0.25f * b)); }

__global__ __launch_bounds__(256) void affine(const float4* __restrict__ x, const float4* __restrict__ y,
                                              float4* __restrict__ out, int64_t count) {
  const int64_t i = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (i >= count) return;
  const float4 a = x[i], b = y[i];
  out[i] = make_float4(one(a.x, b.x), one(a.y, b.y), one(a.z, b.z), one(a.w, b.w));
}

const char* launch(
    uint64_t x, uint64_t y, uint64_t out,
    int64_t numel, uint64_t stream_at) {
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(stream_at);
  const int64_t count = numel / 4;
  affine<<<unsigned((count + 255) / 256), 256, 0, stream>>>(
      reinterpret_cast<const float4*>(x), reinterpret_cast<const float4*>(y), reinterpret_cast<float4*>(out), count);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
"""

BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
#include <stdexcept>

const char* launch(
    uint64_t x, uint64_t y, uint64_t out,
    int64_t numel, uint64_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("launch", [](
    uint64_t x, uint64_t y, uint64_t out,
    int64_t numel, uint64_t stream) {
    if (const char* error = launch(x, y, out, numel, stream)) throw std::runtime_error(error);
  });
}
"""

extension = load_inline(
    name="cuda_joined_side_stream",
    cpp_sources=BINDING,
    cuda_sources=CUDA,
    no_implicit_headers=True,
    extra_cuda_cflags=["-O3"],
)


def stream():
    return torch.cuda.current_stream().cuda_stream


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = None

    def forward(self, x, y):
        main = torch.cuda.current_stream()
        if self.side is None:
            self.side = torch.cuda.Stream()
        out = torch.empty_like(x)
        half = x.shape[0] // 2
        self.side.wait_stream(main)
        for queue, rows in ((main, slice(0, half)), (self.side, slice(half, None))):
            a, b, c = x[rows], y[rows], out[rows]
            extension.launch(a.data_ptr(), b.data_ptr(), c.data_ptr(), a.numel(), queue.cuda_stream)
        main.wait_stream(self.side)
        return out
