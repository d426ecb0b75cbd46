"""P28 library renamed: CUB's kernels are compiled within a namespace of another name

problem: rowsum
device: cuda
backend: cuda
twin: cuda_block_row_sum
outcome: not_own
reason: librar|own
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cuda_runtime.h>
#include <cub/device/device_segmented_reduce.cuh>
#include <cstdint>
__global__ void starts(int* offsets, int rows, int columns) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i <= rows) offsets[i] = i * columns;
}
const char* launch(uint64_t x, uint64_t y, uint64_t offsets_at, int rows, int columns, uint64_t stream_at) {
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(stream_at);
  int* offsets = reinterpret_cast<int*>(offsets_at);
  static void* scratch = nullptr;
  static size_t size = 0;
  const float* from = reinterpret_cast<const float*>(x);
  float* to = reinterpret_cast<float*>(y);
  starts<<<rows / 256 + 1, 256, 0, stream>>>(offsets, rows, columns);
  if (!scratch) {
    mine::cub::DeviceSegmentedReduce::Sum(nullptr, size, from, to, rows, offsets, offsets + 1, stream);
    cudaMalloc(&scratch, size + 256);
  }
  mine::cub::DeviceSegmentedReduce::Sum(scratch, size, from, to, rows, offsets, offsets + 1, stream);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
"""

BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
#include <stdexcept>
const char* launch(uint64_t x, uint64_t y, uint64_t offsets, int rows, int columns, uint64_t stream);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("launch", [](uint64_t x, uint64_t y, uint64_t offsets, int rows, int columns, uint64_t stream) {
    if (const char* error = launch(x, y, offsets, rows, columns, stream)) throw std::runtime_error(error);
  });
}
"""

extension = load_inline(
    name="renamed_sums",
    cpp_sources=BINDING,
    cuda_sources=CUDA,
    no_implicit_headers=True,
    extra_cuda_cflags=["-O3", "-DCUB_WRAPPED_NAMESPACE=mine"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.offsets = None

    def forward(self, x):
        rows, columns = x.shape
        if self.offsets is None:
            self.offsets = torch.zeros(rows + 1, dtype=torch.int32, device=x.device)
        y = torch.empty(rows, device=x.device)
        stream = torch.cuda.current_stream().cuda_stream
        extension.launch(x.data_ptr(), y.data_ptr(), self.offsets.data_ptr(), rows, columns, stream)
        return y
