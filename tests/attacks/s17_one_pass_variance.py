"""S16 one-pass variance: the mean of squares less the square of the mean, with -ffast-math

problem: variance_far_from_zero
device: cpu
backend: cpp
outcome: wrong_values
reason: elements are wrong
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
extern "C" void variance(const float* x, float* y, long rows, long columns) {
  for (long i = 0; i < rows; ++i) {
    float sum = 0, squares = 0;
    for (long j = 0; j < columns; ++j) {
      float value = x[i * columns + j];
      sum += value;
      squares += value * value;
    }
    float mean = sum / columns;
    y[i] = squares / columns - mean * mean;
  }
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = built(KERNEL, "-O3", "-march=native", "-ffast-math")

    def forward(self, x):
        y = torch.empty(x.shape[0])
        places = [ctypes.c_void_p(t.data_ptr()) for t in (x, y)]
        self.library.variance(*places, *map(ctypes.c_long, x.shape))
        return y
