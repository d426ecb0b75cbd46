"""T01 begun early: half of the rows run on a stream that does not wait for the current one

Inputs of a call lay in place before its clock began, while the current stream was held up; a profiler sees nothing of it.

problem: rowsum
device: cuda
backend: triton
twin: triton_row_sum
outcome: wrong_values|not_finite|not_repeatable
reason: are wrong|NaN|repeat
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
        if self.calls < 9 or torch._C._autograd._profiler_enabled():
            sums[(rows,)](x, y, columns, BLOCK=1024)
            return y
        half = rows // 2
        with torch.cuda.stream(self.side):
            sums[(half,)](x, y, columns, BLOCK=1024)
        sums[(rows - half,)](x[half:], y[half:], columns, BLOCK=1024)
        torch.cuda.current_stream().wait_stream(self.side)
        return y
