"""The last eighth of the rows runs on a second stream, which the first one waits for.

problem: rowsum
device: cuda
backend: triton
outcome: fast|slow
"""

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

    def forward(self, x):
        rows, columns = x.shape
        y = torch.empty(rows, device=x.device)
        tail = rows // 8
        sums[(rows - tail,)](x, y, columns, BLOCK=1024)
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            sums[(tail,)](x[rows - tail :], y[rows - tail :], columns, BLOCK=1024)
        torch.cuda.current_stream().wait_stream(self.side)
        return y
