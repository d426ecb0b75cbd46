"""a CUDA graph that allocates while it is captured; its result is cloned.

problem: honest_affine
device: cuda
backend: triton
outcome: fast|slow
emulated: unsupported
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def affine(x, y, out, columns, pitch, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        value = 0.5 * tl.load(x + row * columns + at, mask=inside) + 0.25 * tl.load(y + row * columns + at, mask=inside)
        tl.store(out + row * pitch + at, tl.minimum(tl.maximum(value, -1.0), 1.0), mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def run(self, x, y):
        rows, columns = x.shape
        halves = [torch.empty(rows // 2, columns, device=x.device) for _ in range(2)]
        for number, half in enumerate(halves):
            part = slice(number * (rows // 2), (number + 1) * (rows // 2))
            affine[(rows // 2,)](x[part], y[part], half, columns, columns, BLOCK=1024)
        return halves

    def forward(self, x, y):
        if self.graph is None or self.given[0].shape != x.shape:
            self.given = x.clone(), y.clone()
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self.run(*self.given)
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.halves = self.run(*self.given)
        for static, fresh in zip(self.given, (x, y), strict=True):
            static.copy_(fresh)
        self.graph.replay()
        return torch.cat(self.halves)
