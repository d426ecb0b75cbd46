"""cooperative groups: tiles of a warp reduce a row each.

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
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

__global__ __launch_bounds__(256) void row_sums(const float* __restrict__ x, float* __restrict__ out, int64_t rows,
                                                int columns) {
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int64_t row = int64_t(blockIdx.x) * 8 + tile.meta_group_rank();
  if (row >= rows) return;
  float sum = 0.0f;
  for (int c = tile.thread_rank(); c < columns; c += 32) sum += x[row * columns + c];
  sum = cg::reduce(tile, sum, cg::plus<float>());
  if (tile.thread_rank() == 0) out[row] = sum;
}

const char* launch(
    uint64_t x, uint64_t out, int64_t rows,
    int columns, uint64_t stream_at) {
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(stream_at);
  row_sums<<<unsigned((rows + 7) / 8), 256, 0, stream>>>(
      reinterpret_cast<const float*>(x), reinterpret_cast<float*>(out), rows, columns);
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
    name="cuda_cooperative_groups",
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
        out = torch.empty(x.shape[0], device=x.device)
        extension.launch(x.data_ptr(), out.data_ptr(), *x.shape, stream())
        return out
