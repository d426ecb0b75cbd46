"""one warp for each row of 32 elements at a time: a grid of a million blocks, kernel time by launch of blocks.

problem: honest_row_sum
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

__global__ __launch_bounds__(32) void chunk_sums(const float* __restrict__ x, float* __restrict__ out, int columns) {
  const int64_t chunks = (columns + 31) / 32, row = blockIdx.x / chunks, chunk = blockIdx.x % chunks;
  const int c = int(chunk) * 32 + threadIdx.x;
  const float sum = warp_sum(c < columns ? x[row * columns + c] : 0.0f);
  if (threadIdx.x == 0) atomicAdd(out + row, sum);
}

const char* launch(
    uint64_t x, uint64_t out, int64_t rows,
    int columns, uint64_t stream_at) {
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(stream_at);
  const int64_t blocks = rows * ((columns + 31) / 32);
  chunk_sums<<<unsigned(blocks), 32, 0, stream>>>(
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
    name="cuda_large_grid",
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
        out = torch.zeros(x.shape[0], device=x.device)
        extension.launch(x.data_ptr(), out.data_ptr(), *x.shape, stream())
        return out
