"""the result is a slice of a buffer whose rows are padded, and forward waits for the device.

problem: honest_affine
device: cuda
backend: triton
outcome: fast|slow
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
    def forward(self, x, y):
        rows, columns = x.shape
        out = torch.empty(rows, columns + 32, device=x.device)[:, 16 : 16 + columns]
        affine[(rows,)](x.contiguous(), y.contiguous(), out, columns, out.stride(0), BLOCK=1024)
        torch.cuda.synchronize()
        return out
