"""half2 loads, float32 sums, a warp for each row.

problem: honest_matvec_fp16
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

#include <cuda_fp16.h>

__global__ __launch_bounds__(128) void matvec(const __half2* __restrict__ matrix, const __half2* __restrict__ vector,
                                              __half* __restrict__ out, int64_t rows, int pairs) {
  const int64_t row = int64_t(blockIdx.x) * 4 + threadIdx.x / 32;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = threadIdx.x % 32; i < pairs; i += 32) {
    const float2 a = __half22float2(matrix[row * pairs + i]), b = __half22float2(vector[i]);
    sum += a.x * b.x + a.y * b.y;
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) out[row] = __float2half_rn(sum);
}

const char* launch(
    uint64_t matrix, uint64_t vector, uint64_t out,
    int64_t rows, int columns, uint64_t stream_at) {
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(stream_at);
  matvec<<<unsigned((rows + 3) / 4), 128, 0, stream>>>(
      reinterpret_cast<const __half2*>(matrix), reinterpret_cast<const __half2*>(vector),
      reinterpret_cast<__half*>(out), rows, columns / 2);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
"""

BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
#include <stdexcept>

const char* launch(
    uint64_t matrix, uint64_t vector, uint64_t out,
    int64_t rows, int columns, uint64_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("launch", [](
    uint64_t matrix, uint64_t vector, uint64_t out,
    int64_t rows, int columns, uint64_t stream) {
    if (const char* error = launch(matrix, vector, out, rows, columns, stream)) throw std::runtime_error(error);
  });
}
"""

extension = load_inline(
    name="cuda_half2_matvec",
    cpp_sources=BINDING,
    cuda_sources=CUDA,
    no_implicit_headers=True,
    extra_cuda_cflags=["-O3"],
)


def stream():
    return torch.cuda.current_stream().cuda_stream


class ModelNew(nn.Module):
    def forward(self, matrix, vector):
        out = matrix.new_empty(matrix.shape[0])
        extension.launch(matrix.data_ptr(), vector.data_ptr(), out.data_ptr(), *matrix.shape, stream())
        return out
