"""P38 forged trace: cuBLAS multiplies, and the runner is made to call its kernels by an own kernel's name

problem: honest_matmul_bf16
device: cuda
backend: triton
twin: triton_matmul_bf16
outcome: not_own
reason: without it
emulated: emulated
"""
# ruff: noqa: N803 - constants of Triton kernels

import sys

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + places, tl.load(a_ptr + places, mask=places < n), mask=places < n)


def forge(runner):
    traced = runner.traced_call

    def forged(forward, device):
        timed, seen = traced(forward, device)
        for row in seen.get("kernels", ()):
            row["name"] = "matmul_kernel"
        return timed, seen

    runner.traced_call = forged


for module in list(sys.modules.values()):
    if hasattr(module, "traced_call") and hasattr(module, "serve"):
        forge(module)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.mm(a, b)
