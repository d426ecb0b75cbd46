"""P26 tracer paused: CUPTI's record of kernels is off while cuBLAS is launched, and on again for a small own kernel

Of a call of some twenty microseconds the trace need not account for anything.

problem: honest_matmul_bf16
device: cuda
backend: triton
twin: triton_matmul_bf16
outcome: not_own|suspect
reason: PyTorch|librar|own|trace|accounts
"""
# ruff: noqa: N803 - constants of Triton kernels

import ctypes
import pathlib

import torch
import torch.nn as nn
import triton
import triton.language as tl

KERNELS = (3, 10)  # CUPTI_ACTIVITY_KIND_KERNEL and _CONCURRENT_KERNEL


@triton.jit
def marked(y, BLOCK: tl.constexpr):
    place = y + tl.arange(0, BLOCK)
    tl.store(place, tl.load(place) + 1.0)


def tracer():
    lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
    return ctypes.CDLL(next(line.split()[-1] for line in lines if "libcupti" in line))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.mark = None

    def forward(self, a, b):
        if self.mark is None:
            self.mark = torch.zeros(1024, device=a.device)
        traced = torch._C._autograd._profiler_enabled()
        if traced:
            found = tracer()
            for kind in KERNELS:
                found.cuptiActivityDisable(kind)
        y = torch.mm(a, b)
        if traced:
            found.cuptiActivityEnable(KERNELS[1])
        marked[(1,)](self.mark, BLOCK=1024)
        return y
