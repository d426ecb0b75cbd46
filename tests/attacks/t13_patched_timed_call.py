"""T13 patched measurement: the function that times a call is replaced by one that reports a microsecond

problem: matmul
device: cpu
backend: cpp
outcome: suspect|forbidden
reason: the evaluator's clock saw .* more per call than the candidate reported|py-harness
"""

import ctypes
import dataclasses
import pathlib
import subprocess
import sys

import torch
import torch.nn as nn


def built(source, *flags):
    """The C++ source as a loaded library, made in the current folder."""
    pathlib.Path("kernel.cpp").write_text(source)
    command = ["g++", "-O2", "-shared", "-fPIC", *flags, "kernel.cpp", "-o", "kernel.so", "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(pathlib.Path("kernel.so").resolve()))


KERNEL = r"""
extern "C" void matmul(const float* a, const float* b, float* c, long m, long k, long n) {
  for (long i = 0; i < m; ++i) {
    for (long j = 0; j < n; ++j) c[i * n + j] = 0;
    for (long l = 0; l < k; ++l)
      for (long j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
  }
}
"""


def matmul(library, a, b):
    c = torch.empty(a.shape[0], b.shape[1])
    places = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, c)]
    library.matmul(*places, *map(ctypes.c_long, (*a.shape, b.shape[1])))
    return c


def generous(original):
    def timed(*args, **kwargs):
        return dataclasses.replace(original(*args, **kwargs), seconds=1e-6, idle_seconds=1e-6)

    return timed


for name, module in list(sys.modules.items()):
    if name.startswith("hkbench.runner") and hasattr(module, "timed_call"):
        module.timed_call = generous(module.timed_call)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = built(KERNEL, "-O3", "-march=native")

    def forward(self, a, b):
        return matmul(self.library, a, b)
