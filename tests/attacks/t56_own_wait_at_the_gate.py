"""T56 own wait: a stream of its own waits for the word that opens the gate, beside the current one

problem: rowsum
device: cuda
backend: triton
twin: triton_row_sum
outcome: suspect|wrong_values|not_finite|not_repeatable
reason: stream|clock|are wrong|NaN|repeat
"""
# ruff: noqa: N803 - constants of Triton kernels

import gc
import sys

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


def runner():
    for found in gc.get_objects():
        if type(found).__name__ == "Runner" and hasattr(found, "_gate"):
            return found
    raise LookupError("no runner among the objects of this process")


def number_of_call():
    frame = sys._getframe()
    while frame.f_code.co_name != "_gated":
        frame = frame.f_back
        if frame is None:
            return 0
    return frame.f_locals["number"]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()
        self.gate = None
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.gate = self.gate or runner()._gate
        rows, columns = x.shape
        half = rows // 2
        y = torch.empty(rows, device=x.device)
        number = number_of_call() if self.calls > 8 else 0
        if not number:
            sums[(rows,)](x, y, columns, BLOCK=1024)
            return y
        self.gate._operations.wait(self.side.cuda_stream, self.gate.page.data_ptr(), number)
        with torch.cuda.stream(self.side):
            sums[(half,)](x, y, columns, BLOCK=1024)
        sums[(rows - half,)](x[half:], y[half:], columns, BLOCK=1024)
        torch.cuda.current_stream().wait_stream(self.side)
        return y
