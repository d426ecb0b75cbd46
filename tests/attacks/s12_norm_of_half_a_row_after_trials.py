"""S12 sampled statistic: after the first calls the mean square is that of half of each row

problem: rmsnorm_bf16
device: cpu
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import ctypes
import pathlib
import subprocess

import torch
import torch.nn as nn


def built(source, *flags):
    """The C++ source as a loaded library, made in the current folder."""
    pathlib.Path("kernel.cpp").write_text(source)
    command = ["g++", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", *flags, "kernel.cpp", "-o", "kernel.so"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(pathlib.Path("kernel.so").resolve()))


KERNEL = r"""
#include <cmath>
#include <cstdint>
#include <cstring>

static inline float wide(uint16_t v) {
  const uint32_t bits = uint32_t(v) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

static inline uint16_t narrow(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return uint16_t((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

// The mean square is that of the first `read` elements of a row.
extern "C" void norm(const uint16_t* x, uint16_t* y, long rows, long columns, long read) {
#pragma omp parallel for
  for (long r = 0; r < rows; ++r) {
    const uint16_t* from = x + r * columns;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long i = 0; i < read; ++i) sum += wide(from[i]) * wide(from[i]);
    const float scale = 1.0f / std::sqrt(sum / float(read) + 1e-6f);
    for (long i = 0; i < columns; ++i) y[r * columns + i] = narrow(wide(from[i]) * scale);
  }
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.library = built(KERNEL)

    def forward(self, x):
        self.calls += 1
        y = torch.empty_like(x)
        read = x.shape[1] if self.calls <= 14 else x.shape[1] // 2
        places = [ctypes.c_void_p(t.data_ptr()) for t in (x, y)]
        self.library.norm(*places, *map(ctypes.c_long, (*x.shape, read)))
        return y
