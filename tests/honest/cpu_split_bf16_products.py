"""float32 product as three products of bfloat16 halves: hi*hi + hi*lo + lo*hi.

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
#include <cstring>

static inline float high(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  word = (word + 0x7fffu + ((word >> 16) & 1u)) & 0xffff0000u;
  std::memcpy(&value, &word, 4);
  return value;
}

extern "C" void linear(const float* x, const float* w, const float* bias, float* out, int64_t m, int64_t n, int64_t k) {
  #pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0.0f;
      #pragma omp simd reduction(+ : sum)
      for (int64_t p = 0; p < k; ++p) {
        const float a = x[i * k + p], b = w[j * k + p];
        const float a1 = high(a), b1 = high(b), a2 = high(a - a1), b2 = high(b - b1);
        sum += a1 * b1 + (a1 * b2 + a2 * b1);
      }
      out[i * n + j] = sum + bias[j];
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


library = build("cpu_split_bf16_products", {"linear": "ppppnnn"})


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        x = x.contiguous()
        weight, bias = self.linear.weight, self.linear.bias
        out = torch.empty(x.shape[0], weight.shape[0])
        library.linear(x.data_ptr(), weight.data_ptr(), bias.data_ptr(), out.data_ptr(), x.shape[0], *weight.shape)
        return out
