"""random numbers at construction only: the order in which rows are visited.

problem: honest_row_sum
device: cpu
backend: cpp
outcome: fast|slow
"""

import ctypes
import random
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

extern "C" void row_sums(const float* x, const int64_t* order, float* out, int64_t rows, int64_t columns) {
  #pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t r = order[i];
    float sum = 0.0f;
    #pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < columns; ++c) sum += x[r * columns + c];
    out[r] = sum;
  }
}
"""

KINDS = {"p": ctypes.c_void_p, "n": ctypes.c_int64, "f": ctypes.c_float}


def build(name, signatures):
    """Compiles SOURCE into the current folder and declares what its functions take."""
    Path(f"{name}.cpp").write_text(SOURCE)
    command = ["g++", "-O2", "-march=native", "-fopenmp", "-shared", "-fPIC", f"{name}.cpp", "-o", f"lib{name}.so"]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(Path(f"lib{name}.so").resolve()))
    for function, kinds in signatures.items():
        getattr(loaded, function).argtypes = [KINDS[kind] for kind in kinds]
        getattr(loaded, function).restype = None
    return loaded


library = build("cpu_random_at_construction", {"row_sums": "pppnn"})


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.seed = random.SystemRandom().getrandbits(31)
        self.orders = {}

    def order(self, rows):
        """A permutation of the rows, the same at each call."""
        if rows not in self.orders:
            self.orders[rows] = torch.randperm(rows, generator=torch.Generator().manual_seed(self.seed))
        return self.orders[rows]

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[0])
        library.row_sums(x.data_ptr(), self.order(x.shape[0]).data_ptr(), out.data_ptr(), *x.shape)
        return out
