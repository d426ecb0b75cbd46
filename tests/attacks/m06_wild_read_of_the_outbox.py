"""M06 wild pointer: a kernel reads where the evaluator keeps outputs

problem: emulated_softmax
device: emulated
backend: triton
outcome: out_of_bounds
reason: which is not
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
        return read_at(x, x.data_ptr() // (1 << 40) * (1 << 40) + (1 << 40), x.shape)
