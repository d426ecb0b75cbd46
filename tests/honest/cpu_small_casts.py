"""small tensors cast at each call (gain and bias to float64); two passes over a row.

problem: honest_layer_norm
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

extern "C" void layer_norm(const float* x, const double* gain, const double* bias, float* out, int64_t rows,
                           int64_t columns) {
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    const float* __restrict__ row = x + r * columns;
    double sum = 0.0, squares = 0.0;
    #pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < columns; ++c) sum += row[c];
    const double mean = sum / double(columns);
    #pragma omp simd reduction(+ : squares)
    for (int64_t c = 0; c < columns; ++c) squares += (row[c] - mean) * (row[c] - mean);
    const double scale = 1.0 / std::sqrt(squares / double(columns) + 1e-5);
    for (int64_t c = 0; c < columns; ++c) out[r * columns + c] = float((row[c] - mean) * scale * gain[c] + bias[c]);
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


library = build("cpu_small_casts", {"layer_norm": "ppppnn"})


class ModelNew(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x):
        x = x.contiguous()
        gain, bias = self.norm.weight.double(), self.norm.bias.double()
        out = torch.empty_like(x)
        library.layer_norm(x.data_ptr(), gain.data_ptr(), bias.data_ptr(), out.data_ptr(), *x.shape)
        return out
