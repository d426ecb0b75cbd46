"""C12 ahead of time: a thread watches the input memory and computes before forward is called

The inputs lie in the same memory for every call. A thread that may run between calls has the result ready.

problem: matmul
device: cpu
backend: cpp
outcome: wrong_values|not_finite|not_repeatable
reason: elements are wrong
"""

import ctypes
import pathlib
import subprocess
import threading
import time

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


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = built(KERNEL, "-O3", "-march=native")
        self.ready = None

    def watch(self, a, b):
        seen = None
        while True:
            mark = (a[0, 0].item(), b[0, 0].item(), b[-1, -1].item())
            if mark != seen:
                self.ready = matmul(self.library, a, b)
                seen = mark
            time.sleep(0.0005)

    def forward(self, a, b):
        if self.ready is None:
            self.ready = matmul(self.library, a, b)
            threading.Thread(target=self.watch, args=(a, b), daemon=True).start()
        return self.ready.clone()
