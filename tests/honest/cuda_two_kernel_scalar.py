"""a scalar by two kernels; a gigabyte of scratch is allocated and its first part used for partial sums.

problem: honest_mse
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

__global__ __launch_bounds__(256) void partial_sums(const float* __restrict__ x, const float* __restrict__ y,
                                                    float* __restrict__ partial, int64_t count) {
  __shared__ float scratch[8];
  float sum = 0.0f;
  for (int64_t i = int64_t(blockIdx.x) * 256 + threadIdx.x; i < count; i += int64_t(gridDim.x) * 256) {
    const float d = x[i] - y[i];
    sum += d * d;
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void finish(const float* partial, float* out, int blocks, int64_t count) {
  double sum = 0.0;
  for (int i = threadIdx.x; i < blocks; i += 32) sum += partial[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x == 0) *out = float(sum / double(count));
}

const char* launch(
    uint64_t x, uint64_t y, uint64_t partial,
    uint64_t out, int64_t count, int blocks,
    uint64_t stream_at) {
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(stream_at);
  partial_sums<<<blocks, 256, 0, stream>>>(
      reinterpret_cast<const float*>(x), reinterpret_cast<const float*>(y), reinterpret_cast<float*>(partial), count);
  finish<<<1, 32, 0, stream>>>(
      reinterpret_cast<const float*>(partial), reinterpret_cast<float*>(out), blocks, count);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
"""

BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
#include <stdexcept>

const char* launch(
    uint64_t x, uint64_t y, uint64_t partial,
    uint64_t out, int64_t count, int blocks,
    uint64_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("launch", [](
    uint64_t x, uint64_t y, uint64_t partial,
    uint64_t out, int64_t count, int blocks,
    uint64_t stream) {
    if (const char* error = launch(x, y, partial, out, count, blocks, stream)) throw std::runtime_error(error);
  });
}
"""

extension = load_inline(
    name="cuda_two_kernel_scalar",
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
        self.scratch = None

    def forward(self, x, y):
        if self.scratch is None:
            self.scratch = torch.empty(2**30, dtype=torch.uint8, device=x.device)
        out = x.new_empty(())
        extension.launch(x.data_ptr(), y.data_ptr(), self.scratch.data_ptr(), out.data_ptr(), x.numel(), 1024, stream())
        return out
