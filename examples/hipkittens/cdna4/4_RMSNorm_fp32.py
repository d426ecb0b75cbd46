"""4_RMSNorm_fp32 in HipKittens, cdna4 dialect (gfx950): a block of four waves normalises one row of 8192."""

import torch
import torch.nn as nn

from hipkittens_build import build

HIP = r"""
#include "kittens.cuh"
using namespace kittens;

constexpr int COLUMNS = 8192, WAVES = 4;
constexpr int LENGTH = 256;  // 64 lanes of 4 floats: one 16-byte access a lane
constexpr int PIECES = COLUMNS / (WAVES * LENGTH);
using tensor = gl<float, -1, -1, -1, COLUMNS>;
using vec = rv_naive<float, LENGTH>;
struct globals { tensor x, weight, out; float eps; };

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
__global__ __launch_bounds__(WAVES * WARP_THREADS) void rms_norm(const globals g) {
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

void dispatch(const globals &g, hipStream_t stream) {
  rms_norm<<<g.x.rows(), WAVES * WARP_THREADS, 0, stream>>>(g);
}
"""

extension = build("rms_norm", HIP, {"dispatch": ["x", "weight", "out", "eps"]})


class ModelNew(nn.Module):
    def __init__(self, hidden: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.1 * torch.randn(hidden))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        extension.dispatch(x.view(-1, x.shape[-1]), self.weight, out.view(-1, x.shape[-1]), self.eps)
        return out
