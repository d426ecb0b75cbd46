"""bfloat16 by shifts of the bits, float32 inside, thread_local scratch for a row.

problem: honest_softmax_bf16
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
#include <cstring>
#include <vector>

static inline float widen(uint16_t bits) {
  const uint32_t word = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}

static inline uint16_t narrow(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return uint16_t((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
}

extern "C" void softmax(const uint16_t* x, uint16_t* out, int64_t rows, int64_t columns) {
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    static thread_local std::vector<float> scratch;
    scratch.resize(columns);
    float top = -INFINITY, sum = 0.0f;
    for (int64_t c = 0; c < columns; ++c) {
      scratch[c] = widen(x[r * columns + c]);
      top = scratch[c] > top ? scratch[c] : top;
    }
    for (int64_t c = 0; c < columns; ++c) {
      scratch[c] = expf(scratch[c] - top);
      sum += scratch[c];
    }
    for (int64_t c = 0; c < columns; ++c) out[r * columns + c] = narrow(scratch[c] / sum);
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


library = build("cpu_bf16_softmax", {"softmax": "ppnn"})


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        library.softmax(x.data_ptr(), out.data_ptr(), *x.shape)
        return out
