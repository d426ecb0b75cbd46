"""the library is built in a folder of its own in /dev/shm, with threads as a cluster's settings ask.

problem: rowsum
device: cpu
backend: cpp
outcome: fast|slow
"""

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

extern "C" void sums(const float* x, float* out, int64_t rows, int64_t columns, int threads) {
  #pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t r = 0; r < rows; ++r) {
    double sum[8] = {};
    for (int64_t c = 0; c < columns; ++c) sum[c & 7] += x[r * columns + c];
    out[r] = float((sum[0] + sum[1]) + (sum[2] + sum[3]) + (sum[4] + sum[5]) + (sum[6] + sum[7]));
  }
}
"""

THREADS = int(os.environ.get("RAY_CPUS", "0")) or len(os.sched_getaffinity(0))  # as libraries for clusters read it
folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
(folder / "sums.cpp").write_text(SOURCE)
built = folder / "libsums.so"
subprocess.run(
    ["g++", "-O2", "-march=native", "-fopenmp", "-shared", "-fPIC", folder / "sums.cpp", "-o", built], check=True
)
library = ctypes.CDLL(str(built))
library.sums.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int]
library.sums.restype = None


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[0])
        library.sums(x.data_ptr(), out.data_ptr(), *x.shape, THREADS)
        return out
