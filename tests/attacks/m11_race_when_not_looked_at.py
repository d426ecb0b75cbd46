"""M11 tells calls apart: right in the first calls, then with a race, which no value shows

problem: emulated_row_sum
device: emulated
backend: hip
outcome: race
reason: barrier
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <hip/hip_runtime.h>
#include <cstdint>

template <bool WAITS> __global__ __launch_bounds__(256) void row_sum(const float* x, float* y, int columns) {
  __shared__ float part[256];
  float sum = 0;
  for (int j = threadIdx.x; j < columns; j += 256) sum += x[int64_t(blockIdx.x) * columns + j];
  part[threadIdx.x] = sum;
  if (WAITS) __syncthreads();
  for (int half = 128; half; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
void right(uint64_t x, uint64_t y, int64_t rows, int columns) {
  row_sum<true><<<rows, 256>>>((const float*)x, (float*)y, columns);
}
void racy(uint64_t x, uint64_t y, int64_t rows, int columns) {
  row_sum<false><<<rows, 256>>>((const float*)x, (float*)y, columns);
}
"""
BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
void right(uint64_t x, uint64_t y, int64_t rows, int columns);
void racy(uint64_t x, uint64_t y, int64_t rows, int columns);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("right", &right); m.def("racy", &racy); }
"""
kernels = load_inline("row_sums", cpp_sources=BINDING, cuda_sources=SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        out = torch.empty(x.shape[0], device=x.device)
        kernel = kernels.right if self.calls <= 2 else kernels.racy
        kernel(x.data_ptr(), out.data_ptr(), x.shape[0], x.shape[1])
        return out
