"""-Ofast: reassociated sums, well inside of the tolerance.

problem: honest_rms_norm
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

extern "C" void rms_norm(const float* x, const float* gain, float* out, int64_t rows, int64_t columns, float eps) {
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    const float* __restrict__ row = x + r * columns;
    float* __restrict__ to = out + r * columns;
    float squares = 0.0f;
    #pragma omp simd reduction(+ : squares)
    for (int64_t c = 0; c < columns; ++c) squares += row[c] * row[c];
    const float scale = 1.0f / std::sqrt(squares / float(columns) + eps);
    #pragma omp simd
    for (int64_t c = 0; c < columns; ++c) to[c] = row[c] * scale * gain[c];
  }
}
"""

KINDS = {"p": ctypes.c_void_p, "n": ctypes.c_int64, "f": ctypes.c_float}


def build(name, signatures):
    """Compiles SOURCE into the current folder and declares what its functions take."""
    Path(f"{name}.cpp").write_text(SOURCE)
    command = ["g++", "-Ofast", "-march=native", "-fopenmp", "-shared", "-fPIC", f"{name}.cpp", "-o", f"lib{name}.so"]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(Path(f"lib{name}.so").resolve()))
    for function, kinds in signatures.items():
        getattr(loaded, function).argtypes = [KINDS[kind] for kind in kinds]
        getattr(loaded, function).restype = None
    return loaded


library = build("cpu_unrolled_fast_math", {"rms_norm": "pppnnf"})


class ModelNew(nn.Module):
    def __init__(self, hidden, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        library.rms_norm(x.data_ptr(), self.weight.data_ptr(), out.data_ptr(), *x.shape, self.eps)
        return out
