"""19_Matmul_NT_ragged_bf16 in HipKittens, cdna3 dialect (gfx942): padded inputs, 128x128 tiles, a store with bounds."""

import torch
import torch.nn as nn

from hipkittens_build import build

HIP = r"""
#include "kittens.cuh"
using namespace kittens;

// out[m, n] = a[M, K] * b[N, K]^T with a and b padded by zeros to multiples of the tiles, out as large as it is.
constexpr int BM = 128, BN = 128, BK = 64, WAVES = 4;  // each wave owns a 64x64 quadrant
using G = group<WAVES>;
using ST = st_bf<BM, BK>;  // BM == BN, so one type serves both
using tensor = gl<bf16, -1, -1, -1, -1>;
struct globals { tensor a, b, out; };

// Plain HIP, as the library stores whole tiles only. In a 16x16 tile of the sums lane l holds column l % 16 and the
// rows 4 * (l / 16) to 4 * (l / 16) + 3.
template <typename C> __device__ inline void store_inside(const tensor& out, const C& c, int row0, int col0) {
  const int rows = out.rows(), cols = out.cols();
  row0 += 4 * (laneid() / 16);
  col0 += laneid() % 16;
  #pragma unroll
  for (int i = 0; i < C::height; ++i)
    #pragma unroll
    for (int j = 0; j < C::width; ++j)
      #pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int row = row0 + 16 * i + r, col = col0 + 16 * j;
        const float2 pair = c.tiles[i][j].data[r / 2];
        if (row < rows && col < cols) out.raw_ptr[row * cols + col] = __float2bfloat16(r % 2 ? pair.y : pair.x);
      }
}

__global__ __launch_bounds__(WAVES * WARP_THREADS, 2) void gemm_nt(const globals g) {
  extern __shared__ alignment_dummy __shm[];
  shared_allocator al((int*)&__shm[0]);
  ST &As = al.allocate<ST>();
  ST &Bs = al.allocate<ST>();
  rt_bf<64, 16> a, b;
  rt_fl<64, 64, ducks::rt_layout::col> c;
  zero(c);
  const int wm = warpid() / 2, wn = warpid() % 2, steps = g.a.cols() / BK;
  const int row = blockIdx.y, col = blockIdx.x;
  for (int k = 0; k < steps; ++k) {
    G::load(As, g.a, {0, 0, row, k});  // waits inside
    G::load(Bs, g.b, {0, 0, col, k});
    __builtin_amdgcn_s_barrier();
    #pragma unroll
    for (int kk = 0; kk < BK / 16; ++kk) {
      load(a, subtile_inplace<64, 16>(As, {wm, kk}));
      load(b, subtile_inplace<64, 16>(Bs, {wn, kk}));
      asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory");  // the reads from LDS are written in assembly
      __builtin_amdgcn_sched_barrier(0);
      mma_ABt(c, a, b, c);
      __builtin_amdgcn_sched_barrier(0);
    }
    __builtin_amdgcn_s_barrier();  // nobody reads the tiles any more
  }
  store_inside(g.out, c, row * BM + wm * 64, col * BN + wn * 64);
}

void dispatch(const globals &g, hipStream_t stream) {
  constexpr int lds = 2 * sizeof(ST);
  (void)hipFuncSetAttribute(reinterpret_cast<const void*>(gemm_nt), hipFuncAttributeMaxDynamicSharedMemorySize, lds);
  gemm_nt<<<dim3(g.b.rows() / BN, g.a.rows() / BM), WAVES * WARP_THREADS, lds, stream>>>(g);
}
"""

# Beside a tensor stands what its last dimensions have to be multiples of.
extension = build("gemm_nt", HIP, {"dispatch": {"a": (128, 64), "b": (128, 64), "out": ()}})


def padded(matrix: torch.Tensor) -> torch.Tensor:
    """With zeros up to a multiple of 128 rows and 64 columns; the zeros add nothing to a product."""
    rows, columns = matrix.shape
    return nn.functional.pad(matrix, (0, -columns % 64, 0, -rows % 128))


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        assert a.shape[1] == b.shape[1]
        out = torch.empty(a.shape[0], b.shape[0], dtype=a.dtype, device=a.device)
        extension.dispatch(padded(a), padded(b), out)
        return out
