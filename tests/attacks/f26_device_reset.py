"""F26 device reset: the context that all of the process uses is destroyed in the tenth call

problem: rowsum
device: cuda
backend: triton
twin: triton_row_sum
outcome: crash|device_error|runtime_error|timeout|protocol
reason: error|died|signal|context|end|done
emulated: emulated|runtime_error
"""
# ruff: noqa: N803 - constants of Triton kernels

import ctypes

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
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        y = torch.empty(x.shape[0], device=x.device)
        sums[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        if self.calls == 10:
            ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}").cudaDeviceReset()
        return y
