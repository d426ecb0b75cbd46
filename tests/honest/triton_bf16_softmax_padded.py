"""bfloat16 rows in float32; the result is a slice of a padded buffer.

problem: honest_softmax_bf16
device: cuda
backend: triton
outcome: fast|slow
"""

import triton
import triton.language as tl
from torch import nn


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, pitch, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=-float("inf")).to(tl.float32)
    weight = tl.exp(x - tl.max(x, axis=0))
    result = weight / tl.sum(weight, axis=0)
    tl.store(out_ptr + row * pitch + at, result.to(tl.bfloat16), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        padded = x.new_empty(rows, columns + 64)
        softmax_kernel[(rows,)](x, padded, columns, columns + 64, BLOCK=triton.next_power_of_2(columns), num_warps=8)
        return padded[:, :columns]
