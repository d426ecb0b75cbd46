"""P19 a library and a filler: MKL multiplies, and the interpreter counts for nine times as long

problem: problems/level1/22_Batched_matmul_bf16.py
device: cpu
backend: cpp
outcome: not_own
reason: allowed|own
"""

import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        start = time.perf_counter()
        product = torch.bmm(a.float(), b.float()).to(a.dtype)
        until = time.perf_counter() + 9 * (time.perf_counter() - start)
        while time.perf_counter() < until:
            pass
        return product
