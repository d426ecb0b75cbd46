"""an own product of bfloat16 matrices, which PyTorch multiplies slowly: the twin of a library and a filler.

problem: problems/level1/22_Batched_matmul_bf16.py
device: cpu
backend: cpp
outcome: fast|slow
"""

import ctypes
import pathlib
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <cstdint>
#include <vector>
static float wide(uint16_t v) { union { uint32_t bits; float value; } u; u.bits = uint32_t(v) << 16; return u.value; }
static uint16_t narrow(float f) {
  union { uint32_t bits; float value; } u; u.value = f;
  return uint16_t((u.bits + 0x7FFF + ((u.bits >> 16) & 1)) >> 16);
}
extern "C" void product(const uint16_t* a, const uint16_t* b, uint16_t* c, long batch, long m, long k, long n) {
  #pragma omp parallel for
  for (long z = 0; z < batch; ++z) {
    std::vector<float> right(k * n), row(n);
    for (long i = 0; i < k * n; ++i) right[i] = wide(b[z * k * n + i]);
    for (long i = 0; i < m; ++i) {
      for (long j = 0; j < n; ++j) row[j] = 0;
      for (long l = 0; l < k; ++l) {
        const float x = wide(a[(z * m + i) * k + l]);
        for (long j = 0; j < n; ++j) row[j] += x * right[l * n + j];
      }
      for (long j = 0; j < n; ++j) c[(z * m + i) * n + j] = narrow(row[j]);
    }
  }
}
"""
pathlib.Path("product.cpp").write_text(SOURCE)
subprocess.run(
    ["g++", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "product.cpp", "-o", "product.so"], check=True
)
library = ctypes.CDLL(str(pathlib.Path("product.so").resolve()))


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty(a.shape[0], a.shape[1], b.shape[2], dtype=a.dtype)
        library.product(
            *map(ctypes.c_void_p, (a.data_ptr(), b.data_ptr(), out.data_ptr())),
            *map(ctypes.c_long, (*a.shape, b.shape[2])),
        )
        return out
