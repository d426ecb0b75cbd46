"""T25 work left queued: after its own call a low-priority stream keeps the device busy for the baseline

Other processes share the device: what is left running slows the next one's call.

problem: rowsum
device: cuda
backend: triton
outcome: suspect|not_own
emulated: timeout
reason: stream|busy|clock|idle|PyTorch|outside
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
        self.stream = torch.cuda.Stream()
        self.ballast = torch.randn(8192, 8192, device="cuda")

    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        sums[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        with torch.cuda.stream(self.stream):
            for _ in range(4):
                self.ballast @ self.ballast
        return y
