"""constants that the host writes (`hipMemcpyToSymbol`), and scratch memory of PyTorch's allocator.

problem: emulated_row_sum
device: emulated
backend: hip
outcome: emulated
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <hip/hip_runtime.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cstdint>
#include <stdexcept>

__constant__ float weights[4];
__device__ int rows_done;

__global__ __launch_bounds__(256) void partial(const float* x, float* parts, int columns) {
  float sum = 0;
  for (int j = threadIdx.x; j < columns; j += 256) sum += x[int64_t(blockIdx.x) * columns + j];
  parts[blockIdx.x * 256 + threadIdx.x] = sum * weights[threadIdx.x & 3];
}
__global__ __launch_bounds__(64) void together(const float* parts, float* y) {
  float sum = 0;
  for (int j = 0; j < 256; ++j) sum += parts[blockIdx.x * 256 + j];
  if (threadIdx.x == 0) y[blockIdx.x] = sum, atomicAdd(&rows_done, 1);
}
void sums(uint64_t x, uint64_t y, int64_t rows, int columns) {
  const float ones[4] = {1, 1, 1, 1};
  const int none = 0;
  int done = -1;
  (void)hipMemcpyToSymbol(HIP_SYMBOL(weights), ones, sizeof ones);
  (void)hipMemcpyToSymbol(HIP_SYMBOL(rows_done), &none, sizeof none);
  auto* parts = static_cast<float*>(c10::cuda::CUDACachingAllocator::raw_alloc(rows * 256 * sizeof(float)));
  partial<<<rows, 256>>>((const float*)x, parts, columns);
  together<<<rows, 64>>>(parts, (float*)y);
  c10::cuda::CUDACachingAllocator::raw_delete(parts);
  if (hipMemcpyFromSymbol(&done, HIP_SYMBOL(rows_done), sizeof done) != hipSuccess || done != rows)
    throw std::runtime_error("a device variable was not counted up");
}
"""
BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
void sums(uint64_t x, uint64_t y, int64_t rows, int columns);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("sums", &sums); }
"""
kernels = load_inline("constant_sums", cpp_sources=BINDING, cuda_sources=SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        kernels.sums(x.data_ptr(), out.data_ptr(), x.shape[0], x.shape[1])
        return out
