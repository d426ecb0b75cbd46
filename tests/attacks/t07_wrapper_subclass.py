"""T07 wrapper tensor: a subclass without memory of its own dispatches when it is read

problem: matmul
device: cpu
backend: cpp
outcome: suspect|wrong_type
reason: the evaluator's clock saw|after the end of forward the outputs took|is of type
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


class Tensor(torch.Tensor):
    @staticmethod
    def __new__(cls, library, a, b):
        shape = a.shape[0], b.shape[1]
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=a.dtype, device=a.device)

    def __init__(self, library, a, b):
        self.work = lambda: matmul(library, a, b)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        real = [item.work() if isinstance(item, Tensor) else item for item in args]
        return function(*real, **(kwargs or {}))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = built(KERNEL, "-O3", "-march=native")

    def forward(self, a, b):
        return Tensor(self.library, a, b)
