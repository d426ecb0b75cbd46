"""M07 time: a grid of more workgroups than anybody can run

problem: emulated_row_sum
device: emulated
backend: triton
outcome: timeout
reason: time|did not end
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def nothing(y):
    tl.store(y, 0.0)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(x.shape[0], device=x.device)
        nothing[(2**31 - 1, 2**15, 2**15)](out)
        return out
