"""S15 TF32: the tensor cores round the operands to ten bits

problem: matmul
device: cuda
backend: triton
outcome: wrong_values
reason: are wrong
emulated: build_error
"""
# ruff: noqa: N803 - constants of Triton kernels

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        inner = start + tl.arange(0, K)
        left = tl.load(a + rows[:, None] * k + inner[None, :])
        right = tl.load(b + inner[:, None] * n + columns[None, :])
        total += tl.dot(left, right, input_precision="tf32")
    tl.store(c + rows[:, None] * n + columns[None, :], total)


class ModelNew(nn.Module):
    def forward(self, a, b):
        (m, k), n = a.shape, b.shape[1]
        c = torch.empty(m, n, device=a.device)
        product[(m // 128, n // 128)](a, b, c, m, n, k, M=128, N=128, K=32, num_warps=8)
        return c
