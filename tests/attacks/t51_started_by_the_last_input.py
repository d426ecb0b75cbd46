"""T51 own start: a stream waits for the last word of the input in place of the gate

The kernel may begin between the writing of the inputs and the flush; both are on the evaluator's clock.

problem: rowsum
device: cuda
backend: triton
twin: triton_row_sum
outcome: wrong_values|not_finite|not_repeatable|suspect
reason: are wrong|NaN|repeat|stream|clock
emulated: emulated|runtime_error
"""
# ruff: noqa: N803 - constants of Triton kernels

import ctypes

import torch
import torch.nn as nn
import triton
import triton.language as tl

ANY_ZERO_BIT = 3  # CU_STREAM_WAIT_VALUE_NOR: with 0, until some bit of the word is 0


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
        y = torch.empty(x.shape[0], device=x.device)
        if self.calls < 9 or torch._C._autograd._profiler_enabled():
            sums[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
            return y
        driver = ctypes.CDLL("libcuda.so.1")
        word = ctypes.c_void_p(x.data_ptr() + x.nbytes - 4)
        driver.cuStreamWaitValue32_v2(ctypes.c_void_p(self.side.cuda_stream), word, 0, ANY_ZERO_BIT)
        with torch.cuda.stream(self.side):
            sums[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        torch.cuda.current_stream().wait_stream(self.side)
        return y
