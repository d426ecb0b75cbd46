"""Welford's update in each thread, merged by Chan's formula through shuffles; two outputs.

problem: honest_moments
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
struct Moments {
  float count, mean, m2;
};

__device__ Moments merge(Moments a, Moments b) {
  const float count = a.count + b.count;
  if (count == 0.0f) return a;
  const float delta = b.mean - a.mean, share = b.count / count;
  return {count, a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.count * share};
}

__device__ Moments warp_merge(Moments m) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const Moments other = {__shfl_xor_sync(0xffffffffu, m.count, offset), __shfl_xor_sync(0xffffffffu, m.mean, offset),
                           __shfl_xor_sync(0xffffffffu, m.m2, offset)};
    m = merge(m, other);
  }
  return m;
}

__global__ __launch_bounds__(256) void moments(const float* __restrict__ x, float* __restrict__ means,
                                               float* __restrict__ variances, int columns) {
  __shared__ Moments shared[8];
  const int64_t row = blockIdx.x;
  Moments m = {0.0f, 0.0f, 0.0f};
  for (int c = threadIdx.x; c < columns; c += 256) {
    const float value = x[row * columns + c], delta = value - m.mean;
    m.count += 1.0f;
    m.mean += delta / m.count;
    m.m2 += delta * (value - m.mean);
  }
  m = warp_merge(m);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = m;
  __syncthreads();
  if (threadIdx.x == 0) {
    Moments all = shared[0];
    for (int w = 1; w < 8; ++w) all = merge(all, shared[w]);
    means[row] = all.mean;
    variances[row] = all.m2 / all.count;
  }
}

const char* launch(
    uint64_t x, uint64_t means, uint64_t variances,
    int64_t rows, int columns, uint64_t stream_at) {
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(stream_at);
  moments<<<unsigned(rows), 256, 0, stream>>>(
      reinterpret_cast<const float*>(x), reinterpret_cast<float*>(means), reinterpret_cast<float*>(variances), columns);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
"""

BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
#include <stdexcept>

const char* launch(
    uint64_t x, uint64_t means, uint64_t variances,
    int64_t rows, int columns, uint64_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("launch", [](
    uint64_t x, uint64_t means, uint64_t variances,
    int64_t rows, int columns, uint64_t stream) {
    if (const char* error = launch(x, means, variances, rows, columns, stream)) throw std::runtime_error(error);
  });
}
"""

extension = load_inline(
    name="cuda_welford",
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
        mean, variance = x.new_empty(x.shape[0]), x.new_empty(x.shape[0])
        extension.launch(x.data_ptr(), mean.data_ptr(), variance.data_ptr(), *x.shape, stream())
        return mean, variance
