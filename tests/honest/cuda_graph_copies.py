"""a CUDA graph over static buffers: inputs are copied in, the result is cloned out.

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
    name="cuda_graph_copies",
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
        self.graph = None
        self.static = ()

    def capture(self, x, y):
        self.static = (torch.empty_like(x), torch.empty_like(y), torch.empty_like(x))
        a, b, c = self.static
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            extension.launch(a.data_ptr(), b.data_ptr(), c.data_ptr(), a.numel(), stream())
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            extension.launch(a.data_ptr(), b.data_ptr(), c.data_ptr(), a.numel(), stream())

    def forward(self, x, y):
        if self.graph is None or self.static[0].shape != x.shape:
            self.capture(x, y)
        a, b, c = self.static
        a.copy_(x)
        b.copy_(y)
        self.graph.replay()
        return c.clone()
