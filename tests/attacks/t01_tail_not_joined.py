"""T01 unjoined tail: the last eighth of the rows runs on a stream that nobody waits for

What went on after the end of a call was on no clock as long as it was short.

problem: rowsum
device: cuda
backend: triton
twin: triton_joined_tail
outcome: wrong_values|not_finite|not_repeatable|suspect
reason: are wrong|NaN|repeat|stream
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
        self.side = torch.cuda.Stream()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        rows, columns = x.shape
        y = torch.empty(rows, device=x.device)
        tail = rows // 8 if self.calls > 8 else 0
        sums[(rows - tail,)](x, y, columns, BLOCK=1024)
        if tail:
            self.side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.side):
                sums[(tail,)](x[rows - tail :], y[rows - tail :], columns, BLOCK=1024)
        return y
