"""S16 unstable softmax: exponentials without subtracting the maximum

problem: softmax_of_logits
device: cpu
backend: cpp
outcome: not_finite
reason: NaN or Inf
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
extern "C" void softmax(const float* x, float* y, long rows, long columns) {
  for (long i = 0; i < rows; ++i) {
    float sum = 0;
    for (long j = 0; j < columns; ++j) sum += y[i * columns + j] = expf(x[i * columns + j]);
    for (long j = 0; j < columns; ++j) y[i * columns + j] /= sum;
  }
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = built(KERNEL, "-O3", "-march=native")

    def forward(self, x):
        y = torch.empty_like(x)
        self.library.softmax(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), *map(ctypes.c_long, x.shape))
        return y
