"""23_Attention_full_bf16 in HipKittens, cdna4 dialect (gfx950): a wave owns 32 queries, one pass over the keys."""

import torch
import torch.nn as nn

from hipkittens_build import build

HIP = r"""
#include "kittens.cuh"
using namespace kittens;

// O = softmax(scale * Q K^T) V without a mask, (batch, heads, positions, D) bf16; positions % 128 == 0.
constexpr int D = 128, QB = 32, KVB = 64, WAVES = 4;  // a wave owns QB queries
using G = group<WAVES>;
using tensor = gl<bf16, -1, -1, -1, D>;
using STK = st_bf<KVB, D, st_32x32_s>;
using STV = st_bf<KVB, D, st_8x32_s>;
using scores = rt<float, KVB, QB, col_l, rt_32x32_s>;  // transposed: keys by queries
struct globals { tensor q, k, v, o; float scale_log2e; };

__global__ __launch_bounds__(WAVES * WARP_THREADS, 2) void attention(const globals g) {
  extern __shared__ alignment_dummy __shm[];
  shared_allocator al((int*)&__shm[0]);
  STK &ks = al.allocate<STK>();
  STV &vs = al.allocate<STV>();
  const int b = blockIdx.z, h = blockIdx.y, queries = blockIdx.x * WAVES + warpid();
  rt<bf16, QB, D, row_l, rt_32x16_s> q;
  load(q, g.q, {b, h, queries, 0});
  rt<bf16, KVB, D, row_l, rt_32x16_s> k;
  rt<bf16, KVB, D, col_l, rt_16x32_4_s> v;
  scores s;
  rt<bf16, KVB, QB, col_l, rt_32x32_s> rounded;
  rt<bf16, KVB, QB, col_l, rt_16x32_4_s> p;  // the same registers as `rounded`, named as an operand
  rt<float, D, QB, col_l, rt_32x32_s> o;     // transposed
  typename scores::row_vec largest, before, total, correction;
  zero(o);
  zero(total);
  neg_infty(before);
  const int blocks = g.k.rows() / KVB;
  for (int t = 0; t < blocks; ++t) {
    G::load(ks, g.k, {b, h, t, 0});
    G::load(vs, g.v, {b, h, t, 0});
    asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
    __builtin_amdgcn_s_barrier();
    load(k, ks);
    asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory");  // the reads from LDS are written in assembly: nobody else waits
    __builtin_amdgcn_sched_barrier(0);
    zero(s);
    mma_ABt(s, k, q, s);
    mul(s, s, g.scale_log2e);  // on the fp32 scores: the queries are not rounded again
    col_max(largest, s, before);
    sub(correction, before, largest);
    exp2(correction, correction);
    copy(before, largest);
    sub_col(s, s, largest);
    exp2(s, s);
    mul(total, total, correction);
    col_sum(total, s, total);
    mul_col(o, o, correction);
    copy(rounded, s);  // two at a time, to the nearest
    p = *reinterpret_cast<decltype(p)*>(&rounded);
    load(v, vs);
    asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory");
    __builtin_amdgcn_sched_barrier(0);
    mma_AtB(o, v, p, o);
    __builtin_amdgcn_sched_barrier(0);
    __builtin_amdgcn_s_barrier();  // nobody reads the tiles any more
  }
  div_col(o, o, total);
  rt<float, QB, D, row_l, rt_32x32_s> out;
  transpose(out, o);
  store(g.o, out, {b, h, queries, 0});
}

void dispatch(const globals &g, hipStream_t stream) {
  constexpr int lds = sizeof(STK) + sizeof(STV);
  (void)hipFuncSetAttribute(reinterpret_cast<const void*>(attention), hipFuncAttributeMaxDynamicSharedMemorySize, lds);
  const dim3 grid(g.q.rows() / (QB * WAVES), g.q.depth(), g.q.batch());
  attention<<<grid, WAVES * WARP_THREADS, lds, stream>>>(g);
}
"""

# Beside a tensor stands what its last dimensions have to be multiples of.
extension = build(
    "attention",
    HIP,
    {"dispatch": {"q": (128, 128), "k": (128, 128), "v": (128, 128), "o": (128, 128), "scale_log2e": ()}},
)


class ModelNew(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        assert q.shape == k.shape == v.shape and q.shape[0] <= 65535 and q.shape[1] <= 65535
        out = torch.empty_like(q)
        extension.dispatch(q, k, v, out, self.scale * 1.4426950408889634)
        return out
