"""S55 branch on the size: at other sizes than the problem's own the last row is left as it was

problem: rowsum
device: cuda
backend: triton
twin: triton_row_sum
outcome: shapes
reason: wrong_values|not_finite
options: --shapes 2 --require-shapes
emulated: wrong_values|not_finite|shapes
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
        rows, columns = x.shape
        y = torch.empty(rows, device=x.device)
        own = (rows, columns) in ((16384, 8192), (1024, 2048))
        if own:
            sums[(rows,)](x, y, columns, BLOCK=1024)
        else:
            y[: rows - 1] = x[: rows - 1].sum(-1)
        return y
