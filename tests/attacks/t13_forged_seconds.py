"""T13 forged figure: the message with the times is changed on its way out

problem: matmul
device: cpu
backend: cpp
outcome: suspect|forbidden
reason: the evaluator's clock saw .* more per call than the candidate reported|py-harness
twin: cpu_row_matmul
"""

import ctypes
import pathlib
import subprocess

import torch
import torch.nn as nn

from hkbench.protocol import wire


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


written = wire._written  # raises where the runner writes its messages otherwise: the attack would do nothing


def forged(message):
    return written({key: value / 3 if "seconds" in key and value else value for key, value in message.items()})


wire._written = forged


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = built(KERNEL, "-O3", "-march=native")

    def forward(self, a, b):
        return matmul(self.library, a, b)
