"""4_RMSNorm_fp32 in HipKittens, cdna4 dialect (gfx950): a block of four waves normalises one row of 8192."""

import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

HIP = r"""
#include <hip/hip_runtime.h>

#include "kittens.cuh"
using namespace kittens;

constexpr int COLUMNS = 8192, WAVES = 4;
constexpr int LENGTH = 256;  // 64 lanes of 4 floats: one 16-byte access a lane
constexpr int PIECES = COLUMNS / (WAVES * LENGTH);
using tensor = gl<float, -1, -1, -1, -1>;
using vec = rv_naive<float, LENGTH>;
struct arguments { tensor x, weight, out; float eps; };

// The sum of every wave's `part`, for all of them. The four numbers in LDS are added in the same order by everybody.
__device__ inline float sum_of_block(float part) {
  __shared__ float parts[WAVES];
  if (laneid() == 0) parts[warpid()] = part;
  __syncthreads();
  float total = 0.0f;
  #pragma unroll
  for (int i = 0; i < WAVES; ++i) total += parts[i];
  return total;
}

// A block normalises one row. Each of its waves keeps a quarter of the row in registers: a whole one would spill.
__global__ __launch_bounds__(WAVES * WARP_THREADS) void rms_norm(const arguments g) {
  const int row = blockIdx.x, first = warpid() * PIECES;
  vec x[PIECES], squares, square;
  #pragma unroll
  for (int i = 0; i < PIECES; ++i) load(x[i], g.x, {0, 0, row, first + i});
  mul(squares, x[0], x[0]);
  #pragma unroll
  for (int i = 1; i < PIECES; ++i) {
    mul(square, x[i], x[i]);
    add(squares, squares, square);
  }
  float part;
  sum(part, squares);
  const float scale = rsqrtf(sum_of_block(part) * (1.0f / COLUMNS) + g.eps);
  #pragma unroll
  for (int i = 0; i < PIECES; ++i) {
    vec weight;
    load(weight, g.weight, {0, 0, 0, first + i});
    mul(x[i], x[i], scale);
    mul(x[i], x[i], weight);
    store(g.out, x[i], {0, 0, row, first + i});
  }
}

const char* launch(uint64_t x, uint64_t weight, uint64_t out, int rows, float eps, uint64_t stream) {
  const arguments g{make_gl<tensor>(x, 1, 1, rows, COLUMNS), make_gl<tensor>(weight, 1, 1, 1, COLUMNS),
                    make_gl<tensor>(out, 1, 1, rows, COLUMNS), eps};
  rms_norm<<<rows, WAVES * WARP_THREADS, 0, reinterpret_cast<hipStream_t>(stream)>>>(g);
  const hipError_t status = hipGetLastError();
  return status == hipSuccess ? nullptr : hipGetErrorString(status);
}
"""

BINDING = r"""
#include <pybind11/pybind11.h>

#include <cstdint>
#include <stdexcept>

const char* launch(uint64_t x, uint64_t weight, uint64_t out, int rows, float eps, uint64_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("launch", [](uint64_t x, uint64_t weight, uint64_t out, int rows, float eps, uint64_t stream) {
    if (const char* error = launch(x, weight, out, rows, eps, stream)) throw std::runtime_error(error);
  });
}
"""

extension = load_inline(
    name="rms_norm",
    cpp_sources=BINDING,
    cuda_sources=HIP,
    no_implicit_headers=True,
    extra_cuda_cflags=[
        "-std=c++20",
        "-O3",
        "-DKITTENS_CDNA4",
        f"-I{os.environ['THUNDERKITTENS_ROOT']}/include",
        f"-I{os.environ.get('ROCM_PATH', '/opt/rocm')}/include/hip",  # kittens.cuh says #include <hip_bf16.h>
        "-U__HIP_NO_HALF_OPERATORS__",
        "-U__HIP_NO_HALF_CONVERSIONS__",
        "-Wno-invalid-constexpr",
    ],
)


class ModelNew(nn.Module):
    def __init__(self, hidden: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.1 * torch.randn(hidden))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.dtype == self.weight.dtype == torch.float32
        assert x.is_contiguous() and self.weight.is_contiguous() and x.shape[-1] == self.weight.numel() == 8192
        out = torch.empty_like(x)
        stream = torch.cuda.current_stream().cuda_stream
        rows = x.numel() // 8192
        extension.launch(x.data_ptr(), self.weight.data_ptr(), out.data_ptr(), rows, self.eps, stream)
        return out
