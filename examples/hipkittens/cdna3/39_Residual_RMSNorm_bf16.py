"""39_Residual_RMSNorm_bf16 in HipKittens, cdna3 dialect (gfx942): a block of four waves a row of 8192."""

import torch
import torch.nn as nn

from hipkittens_build import build

HIP = r"""
#include "kittens.cuh"
using namespace kittens;

// Stores of bf16 drop the low bits. Rounded to the nearest bf16 before (ties to even), nothing is left to drop.
struct to_nearest_bf16 {
  template <typename T> static __device__ inline T op(const T& x);
};
template <> __device__ inline float to_nearest_bf16::op<float>(const float& x) {
  const uint32_t bits = __float_as_uint(x);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
  return x == x ? __uint_as_float(rounded) : x;
}
template <> __device__ inline float2 to_nearest_bf16::op<float2>(const float2& x) {
  return float2{op<float>(x.x), op<float>(x.y)};
}

constexpr int COLUMNS = 8192, WAVES = 4;
constexpr int LENGTH = 512;  // eight accesses of 64 neighbouring bf16
constexpr int PIECES = COLUMNS / (WAVES * LENGTH);
using tensor = gl<bf16, -1, -1, -1, COLUMNS>;
using vec = rv_fl<LENGTH>;  // fp32 in registers, bf16 in memory
struct globals { tensor x, residual, weight, out, total; float eps; };

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

// A block adds and normalises one row. Each of its waves keeps a quarter of the row in registers.
__global__ __launch_bounds__(WAVES * WARP_THREADS) void residual_rms_norm(const globals g) {
  const int row = blockIdx.x, first = warpid() * PIECES;
  vec x[PIECES], other, squares;
  #pragma unroll
  for (int i = 0; i < PIECES; ++i) {
    load(x[i], g.x, {0, 0, row, first + i});
    load(other, g.residual, {0, 0, row, first + i});
    add(x[i], x[i], other);
    unary_op<to_nearest_bf16>(other, x[i]);
    store(g.total, other, {0, 0, row, first + i});
  }
  mul(squares, x[0], x[0]);
  #pragma unroll
  for (int i = 1; i < PIECES; ++i) {
    mul(other, x[i], x[i]);
    add(squares, squares, other);
  }
  float part;
  sum(part, squares);
  const float scale = rsqrtf(sum_of_block(part) * (1.0f / COLUMNS) + g.eps);
  #pragma unroll
  for (int i = 0; i < PIECES; ++i) {
    load(other, g.weight, {0, 0, 0, first + i});
    mul(x[i], x[i], scale);
    mul(x[i], x[i], other);
    unary_op<to_nearest_bf16>(x[i], x[i]);
    store(g.out, x[i], {0, 0, row, first + i});
  }
}

void dispatch(const globals &g, hipStream_t stream) {
  residual_rms_norm<<<g.x.rows(), WAVES * WARP_THREADS, 0, stream>>>(g);
}
"""

extension = build("residual_rms_norm", HIP, {"dispatch": ["x", "residual", "weight", "out", "total", "eps"]})


class ModelNew(nn.Module):
    def __init__(self, hidden: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.2 * torch.randn(hidden, dtype=torch.bfloat16))
        self.eps = eps

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        assert x.shape == residual.shape
        out, total = torch.empty_like(x), torch.empty_like(x)
        rows = [tensor.view(-1, x.shape[-1]) for tensor in (x, residual)]
        results = [tensor.view(-1, x.shape[-1]) for tensor in (out, total)]
        extension.dispatch(*rows, self.weight, *results, self.eps)
        return out, total
