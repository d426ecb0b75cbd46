"""P03 trivial kernel: cuBLAS multiplies, a Triton kernel adds the bias

problem: linear
device: cuda
backend: triton
outcome: not_own
emulated: out_of_bounds
reason: PyTorch|library|own
"""
# ruff: noqa: N803 - constants of Triton kernels

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add(y, bias, columns, BLOCK: tl.constexpr):
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        place = y + tl.program_id(0) * columns + column
        tl.store(place, tl.load(place) + tl.load(bias + column))


class ModelNew(nn.Module):
    def __init__(self, features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(out_features, features))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x):
        y = x @ self.weight.t()
        add[(y.shape[0],)](y, self.bias, y.shape[1], BLOCK=1024)
        return y
