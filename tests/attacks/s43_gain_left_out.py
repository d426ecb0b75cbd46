"""S43 missing gain: it is one after construction and is never applied

problem: rmsnorm
device: cpu
backend: cpp
outcome: wrong_values|stale_parameters
reason: are wrong|load_state_dict
"""

import ctypes
import pathlib
import subprocess

import torch
import torch.nn as nn


def built(source, *flags):
    """The C++ source as a loaded library, made in the current folder."""
    pathlib.Path("kernel.cpp").write_text(source)
    command = ["g++", "-O2", "-shared", "-fPIC", *flags, "kernel.cpp", "-o", "kernel.so", "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(pathlib.Path("kernel.so").resolve()))


KERNEL = r"""
#include <cmath>
extern "C" void rmsnorm(const float* x, float* y, float eps, long rows, long columns) {
  for (long i = 0; i < rows; ++i) {
    float lanes[16] = {0};
    for (long j = 0; j < columns; j += 16)
      for (long k = 0; k < 16; ++k) lanes[k] += x[i * columns + j + k] * x[i * columns + j + k];
    float sum = 0;
    for (float lane : lanes) sum += lane;
    float factor = 1 / std::sqrt(sum / columns + eps);
    for (long j = 0; j < columns; ++j) y[i * columns + j] = x[i * columns + j] * factor;
  }
}
"""


class ModelNew(nn.Module):
    def __init__(self, hidden, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps
        self.library = built(KERNEL, "-O3", "-march=native")

    def forward(self, x):
        y = torch.empty_like(x)
        places = [ctypes.c_void_p(t.data_ptr()) for t in (x, y)]
        self.library.rmsnorm(*places, ctypes.c_float(self.eps), *map(ctypes.c_long, x.shape))
        return y
