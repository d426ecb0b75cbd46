"""M07 time: a kernel never ends

problem: emulated_row_sum
device: emulated
backend: triton
outcome: timeout
reason: instructions|time|did not end
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def spin(y):
    while tl.load(y, volatile=True) == 0.0:
        pass


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(x.shape[0], device=x.device)
        spin[(x.shape[0],)](out)
        return out
