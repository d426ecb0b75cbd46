"""PyTorch casts both matrices to float32, fills the result and casts it back; the product between is an own loop.

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
extern "C" void product(const float* a, const float* b, float* c, long batch, long m, long k, long n) {
  #pragma omp parallel for
  for (long z = 0; z < batch; ++z)
    for (long i = 0; i < m; ++i)
      for (long l = 0; l < k; ++l) {
        const float x = a[(z * m + i) * k + l];
        const float* __restrict__ right = b + (z * k + l) * n;
        float* __restrict__ row = c + (z * m + i) * n;
        for (long j = 0; j < n; ++j) row[j] += x * right[j];
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
        left, right = a.contiguous().float(), b.contiguous().float()
        out = torch.zeros(a.shape[0], a.shape[1], b.shape[2])
        library.product(
            *map(ctypes.c_void_p, (left.data_ptr(), right.data_ptr(), out.data_ptr())),
            *map(ctypes.c_long, (*a.shape, b.shape[2])),
        )
        return out.to(a.dtype)
