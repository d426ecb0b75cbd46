"""an operator of PyTorch between two kernels, on what the first one computed.

problem: emulated_softmax
device: emulated
backend: triton
outcome: emulated
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    place = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < columns
    values = tl.load(x + place, mask=inside, other=float("-inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + place, powers / tl.sum(powers, 0), mask=inside)


def softmaxed(x):
    out = torch.empty(x.shape, device=x.device)
    softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        first = softmaxed(x)
        return softmaxed(torch.log(first))
