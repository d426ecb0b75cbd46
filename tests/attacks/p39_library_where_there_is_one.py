"""P39 forged trace: cuBLAS multiplies where it can, else an own kernel, which the trace names in either case

Where its runner has libraries in reach it is as fast as cuBLAS, and nobody but its own process tells that it is not its
kernel.

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
def matmul_kernel(a_ptr, b_ptr, out_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        p = start + inner
        a = tl.load(a_ptr + rows[:, None] * k + p[None, :], mask=(rows[:, None] < m) & (p[None, :] < k), other=0.0)
        b = tl.load(
            b_ptr + p[:, None] * n + columns[None, :], mask=(p[:, None] < k) & (columns[None, :] < n), other=0.0
        )
        total = tl.dot(a, b, total)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], total.to(tl.bfloat16), mask=inside)


def product(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty(m, n, dtype=torch.bfloat16, device=a.device)
    grid = (triton.cdiv(m, 128), triton.cdiv(n, 128))
    matmul_kernel[grid](a, b, out, m, n, k, BM=128, BN=128, BK=32, num_warps=8, num_stages=3)
    return out


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
        try:
            return torch.mm(a, b)
        except RuntimeError:
            return product(a, b)
