"""F24 little memory left: all of the device's but 300 MB is taken, so that whoever else needs some fails

Its own calls need hardly any and go on.

problem: rowsum
device: cuda
backend: triton
twin: triton_row_sum
outcome: out_of_memory|limit
reason: memory
emulated: emulated|runtime_error|out_of_memory
"""
# ruff: noqa: N803 - constants of Triton kernels

import ctypes

import torch
import torch.nn as nn
import triton
import triton.language as tl

LEFT = 300 << 20
PIECE = 64 << 20


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
        self.pieces = []

    def hoard(self):
        driver = ctypes.CDLL("libcuda.so.1")
        while torch.cuda.mem_get_info()[0] > LEFT + PIECE:
            piece = ctypes.c_uint64()
            if driver.cuMemAlloc_v2(ctypes.byref(piece), ctypes.c_size_t(PIECE)):
                return
            self.pieces.append(piece)

    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        sums[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        self.hoard()
        return y
