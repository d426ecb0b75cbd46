"""P02 unused kernel: a Triton kernel is defined, PyTorch does the work

problem: rowsum
device: cuda
backend: triton
outcome: not_own
reason: PyTorch|library|own
"""
# ruff: noqa: N803 - constants of Triton kernels

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sums(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        total += tl.load(x + row * columns + start + tl.arange(0, BLOCK))
    tl.store(y + row, tl.sum(total, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
