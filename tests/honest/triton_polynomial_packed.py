"""three parameters packed into one table, which is kept while their versions stay.

problem: honest_polynomial
device: cuda
backend: triton
outcome: fast|slow
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def polynomial_kernel(x_ptr, table_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row + at, mask=inside, other=0.0)
    c0 = tl.load(table_ptr + at, mask=inside, other=0.0)
    c1 = tl.load(table_ptr + columns + at, mask=inside, other=0.0)
    c2 = tl.load(table_ptr + 2 * columns + at, mask=inside, other=0.0)
    tl.store(out_ptr + row + at, c0 + x * (c1 + x * c2), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        for name in ("c0", "c1", "c2"):
            setattr(self, name, nn.Parameter(torch.randn(columns)))
        self._table = (None, None)

    def table(self):
        versions = tuple((p.data_ptr(), p._version) for p in self.parameters())
        if self._table[0] != versions:
            self._table = (versions, torch.stack([p.detach() for p in self.parameters()]))
        return self._table[1]

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        rows, columns = x.shape
        polynomial_kernel[(rows, triton.cdiv(columns, 1024))](x, self.table(), out, columns, BLOCK=1024)
        return out
