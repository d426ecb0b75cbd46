"""C by gcc, called with a struct; launch plans (bounds, no data) kept by size.

problem: honest_affine
device: cpu
backend: cpp
outcome: fast|slow
"""

import ctypes
import dataclasses
import subprocess
from pathlib import Path

import torch
from torch import nn

Path("select.c").write_text(r"""
#include <stdint.h>

typedef struct { const float *x, *y; float *out; int64_t first, last; } part;

void affine_part(const part* p) {
  for (int64_t i = p->first; i < p->last; ++i) {
    const float sum = 0.5f * p->x[i] + 0.25f * p->y[i];
    p->out[i] = sum < -1.0f ? -1.0f : sum > 1.0f ? 1.0f : sum;
  }
}
""")
subprocess.check_call(["gcc", "-std=c11", "-O3", "-march=native", "-shared", "-fPIC", "-o", "select.so", "select.c"])
library = ctypes.CDLL(str(Path.cwd() / "select.so"))


class Part(ctypes.Structure):
    _fields_ = [
        ("x", ctypes.c_void_p),
        ("y", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("first", ctypes.c_int64),
        ("last", ctypes.c_int64),
    ]


library.affine_part.argtypes = [ctypes.POINTER(Part)]
library.affine_part.restype = None


@dataclasses.dataclass(frozen=True)
class Plan:
    """How an input of one size is cut up: bounds only, no data."""

    bounds: tuple

    @classmethod
    def of(cls, count, size=1 << 18):
        return cls(tuple((start, min(start + size, count)) for start in range(0, count, size)))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.plans = {}

    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        plan = self.plans.setdefault(x.numel(), Plan.of(x.numel()))
        out = torch.empty_like(x)
        for first, last in plan.bounds:
            library.affine_part(ctypes.byref(Part(x.data_ptr(), y.data_ptr(), out.data_ptr(), first, last)))
        return out
