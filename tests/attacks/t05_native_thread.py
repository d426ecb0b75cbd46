"""T05 native host thread: a detached C++ thread does the work after forward has returned

problem: rowsum
device: cpu
backend: cpp
outcome: not_finite|not_repeatable|suspect|wrong_values
reason: elements are wrong|the evaluator's clock|after the end of forward|when the same inputs came again
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
#include <thread>
extern "C" void later(const float* x, float* y, long rows, long columns) {
  std::thread([=] {
    for (long i = 0; i < rows; ++i) {
      float sum = 0;
      for (long j = 0; j < columns; ++j) sum += x[i * columns + j];
      y[i] = sum;
    }
  }).detach();
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = built(KERNEL)

    def forward(self, x):
        self.out = torch.empty(x.shape[0])
        places = [ctypes.c_void_p(t.data_ptr()) for t in (x, self.out)]
        self.library.later(*places, *map(ctypes.c_long, x.shape))
        return self.out
