"""P40 forged trace: PyTorch's kernels for single operations, fewer than the reference needs, have an own kernel's name

problem: honest_polynomial
device: cuda
backend: triton
outcome: not_established
reason: established
"""
# ruff: noqa: N803 - constants of Triton kernels

import sys

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def polynomial_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + places, tl.load(x_ptr + places, mask=places < n), mask=places < n)


def forge(runner):
    traced = runner.traced_call

    def forged(forward, device):
        timed, seen = traced(forward, device)
        for row in seen.get("kernels", ()):
            row["name"] = "polynomial_kernel"
        return timed, seen

    runner.traced_call = forged


for module in list(sys.modules.values()):
    if hasattr(module, "traced_call") and hasattr(module, "serve"):
        forge(module)


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.c0, self.c1, self.c2 = (nn.Parameter(torch.randn(columns)) for _ in range(3))

    def forward(self, x):
        return torch.addcmul(self.c0, x, torch.addcmul(self.c1, self.c2, x))
