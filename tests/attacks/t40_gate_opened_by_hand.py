"""T40 own release: another stream opens the gate of the call before the evaluator does

problem: rowsum
device: cuda
backend: triton
twin: triton_row_sum
outcome: wrong_values|not_finite|not_repeatable
reason: are wrong|NaN|repeat
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
        if self.calls > 8 and number_of_call():
            self.gate._operations.write(self.side.cuda_stream, self.gate.page.data_ptr(), number_of_call())
            self.side.synchronize()
        y = torch.empty(x.shape[0], device=x.device)
        sums[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
