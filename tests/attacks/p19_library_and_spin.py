"""P19 a library and a filler: MKL multiplies in float32 what eager multiplies slowly in bfloat16, an own loop spins on

problem: problems/level1/22_Batched_matmul_bf16.py
device: cpu
backend: cpp
outcome: not_own
reason: allowed|own
"""

import ctypes
import pathlib
import subprocess
import time

import torch
import torch.nn as nn

SOURCE = r"""
#include <chrono>
extern "C" void settle(double seconds) {
  #pragma omp parallel
  {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    volatile long turns = 0;
    while (std::chrono::steady_clock::now() < end)
      for (int i = 0; i < 1000; ++i) turns = turns + 1;
  }
}
"""
pathlib.Path("settle.cpp").write_text(SOURCE)
subprocess.run(["g++", "-O2", "-fopenmp", "-shared", "-fPIC", "settle.cpp", "-o", "settle.so"], check=True)
settle = ctypes.CDLL(str(pathlib.Path("settle.so").resolve())).settle
settle.argtypes = [ctypes.c_double]


class ModelNew(nn.Module):
    def forward(self, a, b):
        start = time.perf_counter()
        product = torch.bmm(a.float(), b.float()).to(a.dtype)
        settle(1.5 * (time.perf_counter() - start))
        return product
