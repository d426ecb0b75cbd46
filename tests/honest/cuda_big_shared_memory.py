"""96 KiB of shared memory for a block, with the attribute set: softmax of a row that stays on chip.

problem: honest_softmax
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

#include <cmath>

extern __shared__ float staged[];

__device__ float block_max(float v, float* scratch) {
  for (int offset = 16; offset > 0; offset /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, offset));
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  float top = scratch[0];
  for (int w = 1; w < blockDim.x / 32; ++w) top = fmaxf(top, scratch[w]);
  __syncthreads();
  return top;
}

__global__ __launch_bounds__(512) void softmax(const float* __restrict__ x, float* __restrict__ out, int columns) {
  __shared__ float scratch[16];
  const int64_t row = int64_t(blockIdx.x) * columns;
  float top = -INFINITY, sum = 0.0f;
  for (int c = threadIdx.x; c < columns; c += 512) {
    staged[c] = x[row + c];
    top = fmaxf(top, staged[c]);
  }
  top = block_max(top, scratch);
  for (int c = threadIdx.x; c < columns; c += 512) {
    staged[c] = expf(staged[c] - top);
    sum += staged[c];
  }
  const float scale = 1.0f / block_sum(sum, scratch);
  for (int c = threadIdx.x; c < columns; c += 512) out[row + c] = staged[c] * scale;
}

const char* launch(
    uint64_t x, uint64_t out, int64_t rows,
    int columns, uint64_t stream_at) {
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(stream_at);
  const int bytes = 96 * 1024;
  if (columns > bytes / 4) return "rows are too long for shared memory";
  const cudaError_t set = cudaFuncSetAttribute(softmax, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (set != cudaSuccess) return cudaGetErrorString(set);
  softmax<<<unsigned(rows), 512, bytes, stream>>>(
      reinterpret_cast<const float*>(x), reinterpret_cast<float*>(out), columns);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
"""

BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
#include <stdexcept>

const char* launch(
    uint64_t x, uint64_t out, int64_t rows,
    int columns, uint64_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("launch", [](
    uint64_t x, uint64_t out, int64_t rows,
    int columns, uint64_t stream) {
    if (const char* error = launch(x, out, rows, columns, stream)) throw std::runtime_error(error);
  });
}
"""

extension = load_inline(
    name="cuda_big_shared_memory",
    cpp_sources=BINDING,
    cuda_sources=CUDA,
    no_implicit_headers=True,
    extra_cuda_cflags=["-O3"],
)


def stream():
    return torch.cuda.current_stream().cuda_stream


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        extension.launch(x.data_ptr(), out.data_ptr(), *x.shape, stream())
        return out
