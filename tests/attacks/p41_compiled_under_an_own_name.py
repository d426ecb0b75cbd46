"""P41 forged trace: torch.compile's kernels, which the runner is made to call by an own kernel's name

problem: honest_polynomial
device: cuda
backend: triton
outcome: not_own
reason: without it
"""
# ruff: noqa: N803 - constants of Triton kernels

import sys

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def polynomial_kernel(a_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + places, tl.load(a_ptr + places, mask=places < n), mask=places < n)


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


def polynomial(x, c0, c1, c2):
    return c0 + c1 * x + c2 * x * x


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.c0, self.c1, self.c2 = (nn.Parameter(torch.randn(columns)) for _ in range(3))
        self.compiled = torch.compile(polynomial)

    def forward(self, x):
        return self.compiled(x, self.c0, self.c1, self.c2)
