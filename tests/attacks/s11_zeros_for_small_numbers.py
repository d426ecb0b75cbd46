"""S27 small numbers dropped: entries below a hundred thousandth become zero

problem: small_numbers
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
    command = ["g++", "-O2", "-shared", "-fPIC", *flags, "kernel.cpp", "-o", "kernel.so", "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(pathlib.Path("kernel.so").resolve()))


KERNEL = r"""
extern "C" void scale(const float* x, const float* s, float* y, long rows, long columns) {
  long first = 0;
  while (first < columns && s[first] < 1e-5f) ++first;
  for (long i = 0; i < rows; ++i) {
    for (long j = 0; j < first; ++j) y[i * columns + j] = 0;
    for (long j = first; j < columns; ++j) y[i * columns + j] = x[i * columns + j] * s[j];
  }
}
"""


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.register_buffer("scale", torch.logspace(-6, 0, columns))
        self.library = built(KERNEL, "-O3", "-march=native")

    def forward(self, x):
        y = torch.empty_like(x)
        places = [ctypes.c_void_p(t.data_ptr()) for t in (x, self.scale, y)]
        self.library.scale(*places, *map(ctypes.c_long, x.shape))
        return y
