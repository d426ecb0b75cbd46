"""inline PTX: a load that bypasses the first-level cache and an approximate reciprocal square root.

problem: honest_rms_norm
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
__device__ __forceinline__ float warp_sum(float v) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

__device__ __forceinline__ float block_sum(float v, float* scratch) {
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  float total = 0.0f;
  for (int w = 0; w < blockDim.x / 32; ++w) total += scratch[w];
  __syncthreads();
  return total;
}

__device__ __forceinline__ float streamed(const float* at) {
  float value;
  asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(value) : "l"(at));
  return value;
}

__global__ __launch_bounds__(256) void rms_norm(const float* __restrict__ x, const float* __restrict__ gain,
                                                float* __restrict__ out, int columns, float eps) {
  __shared__ float scratch[8];
  const int64_t row = int64_t(blockIdx.x) * columns;
  float squares = 0.0f, scale;
  for (int c = threadIdx.x; c < columns; c += 256) {
    const float v = streamed(x + row + c);
    squares += v * v;
  }
  const float mean = block_sum(squares, scratch) / float(columns) + eps;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(scale) : "f"(mean));
  for (int c = threadIdx.x; c < columns; c += 256) out[row + c] = streamed(x + row + c) * scale * gain[c];
}

const char* launch(
    uint64_t x, uint64_t gain, uint64_t out,
    int64_t rows, int columns, float eps,
    uint64_t stream_at) {
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(stream_at);
  rms_norm<<<unsigned(rows), 256, 0, stream>>>(
      reinterpret_cast<const float*>(x), reinterpret_cast<const float*>(gain),
      reinterpret_cast<float*>(out), columns, eps);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
"""

BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
#include <stdexcept>

const char* launch(
    uint64_t x, uint64_t gain, uint64_t out,
    int64_t rows, int columns, float eps,
    uint64_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("launch", [](
    uint64_t x, uint64_t gain, uint64_t out,
    int64_t rows, int columns, float eps,
    uint64_t stream) {
    if (const char* error = launch(x, gain, out, rows, columns, eps, stream)) throw std::runtime_error(error);
  });
}
"""

extension = load_inline(
    name="cuda_inline_ptx",
    cpp_sources=BINDING,
    cuda_sources=CUDA,
    no_implicit_headers=True,
    extra_cuda_cflags=["-O3"],
)


def stream():
    return torch.cuda.current_stream().cuda_stream


class ModelNew(nn.Module):
    def __init__(self, hidden, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x):
        out = torch.empty_like(x)
        extension.launch(x.data_ptr(), self.weight.data_ptr(), out.data_ptr(), *x.shape, self.eps, stream())
        return out
