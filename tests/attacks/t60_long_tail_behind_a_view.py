"""T60 copied behind a view: two thirds of the copies are still on their way when a transposed view is handed over

The elements of the output lie in another order than its indices have them, so that a reader of its rows reads
all over its memory.

problem: stacked_transposed
device: cuda
backend: triton
twin: triton_stacked_view
outcome: suspect|wrong_values|not_finite|not_repeatable|impossible
reason: stream|are wrong|NaN|repeat|clock|less than
"""
# ruff: noqa: N803 - constants of Triton kernels

import torch
import torch.nn as nn
import triton
import triton.language as tl

PIECES = 24
WAITED_FOR = 8


@triton.jit
def copied(x, y, count, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + place, tl.load(x + place, mask=place < count), mask=place < count)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()
        self.calls = 0

    def forward(self, a, b):
        self.calls += 1
        honest = self.calls < 9 or torch._C._autograd._profiler_enabled()
        y = torch.empty(2 * a.shape[0], a.shape[1], device=a.device)
        half = a.shape[0] // 2
        sources = [*a[half:].chunk(PIECES // 3), *b.chunk(PIECES - PIECES // 3)]
        now = torch.cuda.current_stream()
        self.side.wait_stream(now)
        done = None
        with torch.cuda.stream(self.side):
            at = half
            for number, source in enumerate(sources):
                y[at : at + source.shape[0]].copy_(source)
                at += source.shape[0]
                if number == WAITED_FOR:
                    done = self.side.record_event()
        count = half * a.shape[1]
        copied[(triton.cdiv(count, 4096),)](a, y, count, BLOCK=4096)
        if honest or done is None:
            now.wait_stream(self.side)
        else:
            now.wait_event(done)
        return y.t()
