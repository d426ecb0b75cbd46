"""M06 wild pointer: a kernel reads the answer where a freed tensor lay

problem: emulated_softmax
device: emulated
backend: triton
outcome: out_of_bounds|not_finite
reason: which is not|nan
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_from(address, y, count, BLOCK: tl.constexpr):
    x = address.to(tl.pointer_type(tl.float32))
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < count), mask=at < count)


def read_at(x, address, shape):
    out = torch.empty(shape, device=x.device)
    copy_from[(triton.cdiv(out.numel(), 1024),)](address, out, out.numel(), BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        address = torch.softmax(x, dim=-1).data_ptr()
        return read_at(x, address, x.shape)
