"""a library, its folder and what is printed have names in other letters than ASCII.

problem: rowsum
device: cpu
backend: cpp
outcome: fast|slow
"""

import ctypes
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

extern "C" void sums(const float* x, float* out, int64_t rows, int64_t columns) {
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    double sum[8] = {};
    for (int64_t c = 0; c < columns; ++c) sum[c & 7] += x[r * columns + c];
    out[r] = float((sum[0] + sum[1]) + (sum[2] + sum[3]) + (sum[4] + sum[5]) + (sum[6] + sum[7]));
  }
}
"""

folder = Path("größe_和_\U0001f9ee")
folder.mkdir()
(folder / "zeilensumme_行.cpp").write_text(SOURCE)
built = folder / "libzeilensumme_行.so"
command = ["g++", "-O2", "-march=native", "-fopenmp", "-shared", "-fPIC", folder / "zeilensumme_行.cpp", "-o", built]
subprocess.run(command, check=True)
sys.stdout.write(f"built {built} ✓\n")
library = ctypes.CDLL(str(built.resolve()))
library.sums.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
library.sums.restype = None


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[0])
        library.sums(x.data_ptr(), out.data_ptr(), *x.shape)
        return out
