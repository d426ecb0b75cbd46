"""S16 unstable softmax: a Triton kernel without subtracting the maximum

problem: softmax_of_logits
device: cuda
backend: triton
outcome: not_finite
reason: NaN or Inf
"""
# ruff: noqa: N803 - constants of Triton kernels

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    place = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    value = tl.exp(tl.load(x + place))
    tl.store(y + place, value / tl.sum(value, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=x.shape[1], num_warps=8)
        return y
