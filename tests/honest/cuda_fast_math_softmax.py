"""-use_fast_math: __expf of the difference to the maximum stays well inside of the tolerance.

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

__global__ __launch_bounds__(256) void softmax(const float* __restrict__ x, float* __restrict__ out, int columns) {
  __shared__ float scratch[8], tops[8];
  const int64_t row = int64_t(blockIdx.x) * columns;
  float top = -3.0e38f, sum = 0.0f;
  for (int c = threadIdx.x; c < columns; c += 256) top = fmaxf(top, x[row + c]);
  for (int offset = 16; offset > 0; offset /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
  __syncthreads();
  for (int w = 0; w < 8; ++w) top = fmaxf(top, tops[w]);
  for (int c = threadIdx.x; c < columns; c += 256) sum += expf(x[row + c] - top);
  const float scale = 1.0f / block_sum(sum, scratch);
  for (int c = threadIdx.x; c < columns; c += 256) out[row + c] = expf(x[row + c] - top) * scale;
}

const char* launch(
    uint64_t x, uint64_t out, int64_t rows,
    int columns, uint64_t stream_at) {
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(stream_at);
  softmax<<<unsigned(rows), 256, 0, stream>>>(
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
    name="cuda_fast_math_softmax",
    cpp_sources=BINDING,
    cuda_sources=CUDA,
    no_implicit_headers=True,
    extra_cuda_cflags=["-O3", "-use_fast_math"],
)


def stream():
    return torch.cuda.current_stream().cuda_stream


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        extension.launch(x.data_ptr(), out.data_ptr(), *x.shape, stream())
        return out
