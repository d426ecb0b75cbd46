"""slow and right: long double, one thread, libm for each element.

problem: honest_softmax
device: cpu
backend: cpp
outcome: fast|slow
"""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
#include <cstdint>

extern "C" void softmax(const float* x, float* out, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    long double top = -INFINITY, sum = 0.0L;
    for (int64_t c = 0; c < columns; ++c) top = std::fmax(top, (long double)x[r * columns + c]);
    for (int64_t c = 0; c < columns; ++c) sum += std::exp((double)(x[r * columns + c] - top));
    for (int64_t c = 0; c < columns; ++c)
      out[r * columns + c] = float(std::exp((double)(x[r * columns + c] - top)) / sum);
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


library = build("cpu_slow_but_right", {"softmax": "ppnn"})


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        library.softmax(x.data_ptr(), out.data_ptr(), *x.shape)
        return out
