"""P17 decoy: a small Triton kernel runs beside PyTorch's

problem: rowsum
device: cuda
backend: triton
outcome: not_own
reason: PyTorch|library|own
"""
# ruff: noqa: N803 - constants of Triton kernels

import torch
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
        y = torch.empty(64, device=x.device)
        sums[(64,)](x, y, x.shape[1], BLOCK=1024)
        return x.sum(dim=-1)
