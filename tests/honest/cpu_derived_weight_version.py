"""derived weights: the transposed weight is kept and rebuilt when the parameter's version or place changes.

problem: honest_linear
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
#include <cstdint>

// out[m, n] = x[m, k] * packed[k, n] + bias[n]; packed is the transposed weight.
extern "C" void gemm_bias(const float* x, const float* packed, const float* bias, float* out, int64_t m, int64_t n,
                          int64_t k) {
  #pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < m; ++i) {
    float* __restrict__ row = out + i * n;
    for (int64_t j = 0; j < n; ++j) row[j] = bias[j];
    for (int64_t p = 0; p < k; ++p) {
      const float a = x[i * k + p];
      const float* __restrict__ w = packed + p * n;
      #pragma omp simd
      for (int64_t j = 0; j < n; ++j) row[j] += a * w[j];
    }
  }
}

extern "C" void transpose(const float* from, float* to, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
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


library = build("cpu_derived_weight_version", {"gemm_bias": "ppppnnn", "transpose": "ppnn"})


def packed_weight(weight):
    """The weight as (in, out), row-major."""
    packed = torch.empty(weight.shape[1], weight.shape[0])
    library.transpose(weight.data_ptr(), packed.data_ptr(), *weight.shape)
    return packed


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self._packed = None
        self._made_from = None

    def packed(self):
        weight = self.linear.weight
        state = (weight.data_ptr(), weight._version)
        if self._made_from != state:
            self._packed = packed_weight(weight)
            self._made_from = state
        return self._packed

    def forward(self, x):
        return self.run(x.contiguous(), self.packed())

    def run(self, x, packed):
        out = torch.empty(x.shape[0], self.linear.out_features)
        library.gemm_bias(
            x.data_ptr(), packed.data_ptr(), self.linear.bias.data_ptr(), out.data_ptr(), *out.shape, x.shape[1]
        )
        return out
