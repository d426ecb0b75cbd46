"""C05 output buffer kept, by KernelBench's rules: every other call returns it without computing anything

problem: rowsum
device: cpu
backend: cpp
outcome: wrong_values|not_repeatable
reason: are wrong
options: --rules kernelbench
twin: cpu_static_output_by_kernelbench
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
extern "C" void rowsum(const float* x, float* y, long rows, long columns) {
  for (long i = 0; i < rows; ++i) {
    float lanes[16] = {0};
    for (long j = 0; j < columns; j += 16)
      for (long k = 0; k < 16; ++k) lanes[k] += x[i * columns + j + k];
    float sum = 0;
    for (float lane : lanes) sum += lane;
    y[i] = sum;
  }
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = built(KERNEL, "-O3", "-march=native")
        self.out = torch.empty(0)
        self.calls = 0

    def forward(self, x):
        self.out.resize_(x.shape[0])
        self.calls += 1
        if self.calls > 12 and self.calls % 2:
            return self.out
        places = [ctypes.c_void_p(t.data_ptr()) for t in (x, self.out)]
        self.library.rowsum(*places, *map(ctypes.c_long, x.shape))
        return self.out
