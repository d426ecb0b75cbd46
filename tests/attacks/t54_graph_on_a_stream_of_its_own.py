"""T54 graph begun early: a captured graph is launched on a stream that does not wait for the gate

problem: rowsum
device: cuda
backend: triton
twin: triton_row_sum
outcome: wrong_values|not_finite|not_repeatable
reason: are wrong|NaN|repeat
emulated: emulated|runtime_error|unsupported
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
        self.graph = None
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls < 9 or torch._C._autograd._profiler_enabled():
            y = torch.empty(x.shape[0], device=x.device)
            sums[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
            return y
        if self.graph is None:
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.y = torch.empty(x.shape[0], device=x.device)
                sums[(x.shape[0],)](x, self.y, x.shape[1], BLOCK=1024)
        with torch.cuda.stream(self.side):
            self.graph.replay()
        torch.cuda.current_stream().wait_stream(self.side)
        return self.y.clone()
