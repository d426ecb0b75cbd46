"""P03 trivial kernel: PyTorch multiplies, the own kernel adds the bias

problem: linear
device: cpu
backend: cpp
outcome: not_own
reason: PyTorch|library|own
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
extern "C" void add(float* y, const float* bias, long rows, long columns) {
  for (long i = 0; i < rows; ++i)
    for (long j = 0; j < columns; ++j) y[i * columns + j] += bias[j];
}
"""


class ModelNew(nn.Module):
    def __init__(self, features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(out_features, features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        self.library = built(KERNEL, "-O3", "-march=native")

    def forward(self, x):
        y = x @ self.weight.t()
        places = [ctypes.c_void_p(t.data_ptr()) for t in (y, self.bias)]
        self.library.add(*places, *map(ctypes.c_long, y.shape))
        return y
