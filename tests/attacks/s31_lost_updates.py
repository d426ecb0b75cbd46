"""S31 race: threads add to the same sums without a lock, most updates arrive

problem: rowsum
device: cpu
backend: cpp
outcome: wrong_values|not_repeatable
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
#include <thread>
#include <vector>
extern "C" void race(const float* x, volatile float* y, long rows, long columns) {
  std::vector<std::thread> crew;
  for (int t = 0; t < 4; ++t)
    crew.emplace_back([=] {
      for (long j = t; j < columns; j += 4)
        for (long i = 0; i < rows; ++i) y[i] = y[i] + x[i * columns + j];
    });
  for (auto& one : crew) one.join();
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = built(KERNEL)

    def forward(self, x):
        y = torch.zeros(x.shape[0])
        self.library.race(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), *map(ctypes.c_long, x.shape))
        return y
