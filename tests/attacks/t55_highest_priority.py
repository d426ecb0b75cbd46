"""T55 priority: the kernel runs on a stream of the highest priority, joined with the current one

problem: rowsum
device: cuda
backend: triton
twin: triton_row_sum
outcome: suspect
reason: stream|clock
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
        self.side = torch.cuda.Stream(priority=-5)

    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        now = torch.cuda.current_stream()
        self.side.wait_stream(now)
        with torch.cuda.stream(self.side):
            sums[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        now.wait_stream(self.side)
        return y
