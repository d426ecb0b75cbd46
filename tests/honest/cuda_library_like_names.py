"""a tiled product of its own whose kernels are called as a library's might be: hopper_gemm_kernel, cutlass_zero.

problem: matmul
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
constexpr int SIDE = 32;

__global__ void cutlass_zero(float* __restrict__ c, int64_t count) {
  const int64_t i = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (i < count) c[i] = 0.0f;
}

// One element a thread, a tile of both factors in shared memory; sizes are multiples of SIDE.
__global__ __launch_bounds__(SIDE * SIDE) void hopper_gemm_kernel(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int k, int n) {
  __shared__ float left[SIDE][SIDE], right[SIDE][SIDE];
  const int row = blockIdx.y * SIDE + threadIdx.y, column = blockIdx.x * SIDE + threadIdx.x;
  float sum = 0.0f;
  for (int start = 0; start < k; start += SIDE) {
    left[threadIdx.y][threadIdx.x] = a[int64_t(row) * k + start + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[int64_t(start + threadIdx.y) * n + column];
    __syncthreads();
    for (int i = 0; i < SIDE; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    __syncthreads();
  }
  c[int64_t(row) * n + column] += sum;
}

const char* launch(uint64_t a, uint64_t b, uint64_t c, int m, int k, int n, uint64_t stream_at) {
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(stream_at);
  const int64_t count = int64_t(m) * n;
  cutlass_zero<<<unsigned((count + 255) / 256), 256, 0, stream>>>(reinterpret_cast<float*>(c), count);
  hopper_gemm_kernel<<<dim3(n / SIDE, m / SIDE), dim3(SIDE, SIDE), 0, stream>>>(
      reinterpret_cast<const float*>(a), reinterpret_cast<const float*>(b), reinterpret_cast<float*>(c), k, n);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
"""

BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
#include <stdexcept>
const char* launch(uint64_t a, uint64_t b, uint64_t c, int m, int k, int n, uint64_t stream);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("launch", [](uint64_t a, uint64_t b, uint64_t c, int m, int k, int n, uint64_t stream) {
    if (const char* error = launch(a, b, c, m, k, n, stream)) throw std::runtime_error(error);
  });
}
"""

extension = load_inline(
    name="cuda_library_like_names",
    cpp_sources=BINDING,
    cuda_sources=CUDA,
    no_implicit_headers=True,
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        m, k = a.shape
        out = torch.empty(m, b.shape[1], device=a.device)
        stream = torch.cuda.current_stream().cuda_stream
        extension.launch(a.data_ptr(), b.data_ptr(), out.data_ptr(), m, k, b.shape[1], stream)
        return out
