"""38_Matmul_bias_GELU_bf16 in HipKittens, cdna3 dialect (gfx942): 128x128 tiles, bias and GELU on the fp32 sums."""

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

// GELU by its tanh approximation, x / 2 * (1 + tanh(u)) = x / (1 + exp(-2 u)): no cancellation for negative x.
struct gelu_tanh {
  template <typename T> static __device__ inline T op(const T& x);
};
template <> __device__ inline float gelu_tanh::op<float>(const float& x) {
  const float u = 0.7978845608028654f * (x + 0.044715f * x * x * x);
  return x / (1.0f + __expf(-2.0f * u));
}
template <> __device__ inline float2 gelu_tanh::op<float2>(const float2& x) {
  return float2{op<float>(x.x), op<float>(x.y)};
}

// out[M, N] = gelu(x[M, K] * weight[N, K]^T + bias); M % 128 == 0, N % 128 == 0, K % 64 == 0.
constexpr int BM = 128, BN = 128, BK = 64, WAVES = 4;  // each wave owns a 64x64 quadrant
using G = group<WAVES>;
using ST = st_bf<BM, BK>;  // BM == BN, so one type serves both
using tensor = gl<bf16, -1, -1, -1, -1>;
struct globals { tensor a, b, bias, out; };

__global__ __launch_bounds__(WAVES * WARP_THREADS, 2) void linear_gelu(const globals g) {
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
  // One value a column: of each 16 columns, lane l holds number l % 16. Filled by hand, as the library's own load
  // of such a vector counts lanes in another way on one of the two architectures.
  typename decltype(c)::row_vec bias;
  #pragma unroll
  for (int j = 0; j < c.width; ++j)
    bias[j][0] = __bfloat162float(g.bias.raw_ptr[col * BN + wn * 64 + j * 16 + laneid() % 16]);
  add_col(c, c, bias);
  unary_map<gelu_tanh>(c, c);
  unary_map<to_nearest_bf16>(c, c);
  store(g.out, c, {0, 0, row * 2 + wm, col * 2 + wn});
}

void dispatch(const globals &g, hipStream_t stream) {
  constexpr int lds = 2 * sizeof(ST);
  (void)hipFuncSetAttribute(reinterpret_cast<const void*>(linear_gelu), hipFuncAttributeMaxDynamicSharedMemorySize, lds);
  linear_gelu<<<dim3(g.out.cols() / BN, g.out.rows() / BM), WAVES * WARP_THREADS, lds, stream>>>(g);
}
"""

# Beside a tensor stands what its last dimensions have to be multiples of.
extension = build("linear_gelu", HIP, {"dispatch": {"a": (128, 64), "b": (128, 64), "bias": (128,), "out": (128, 128)}})


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        weight = torch.randn(out_features, in_features, dtype=torch.bfloat16)
        self.weight = nn.Parameter(weight / in_features**0.5)
        self.bias = nn.Parameter(0.5 * torch.randn(out_features, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.shape[1] == self.weight.shape[1]
        out = torch.empty(x.shape[0], self.weight.shape[0], dtype=x.dtype, device=x.device)
        extension.dispatch(x, self.weight, self.bias, out)
        return out
