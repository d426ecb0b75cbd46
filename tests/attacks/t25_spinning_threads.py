"""T25 slowed baseline: native threads spin except while the candidate itself is called

They are quiet during its own forward pass. Where they get no processor time in between, it gives up.

problem: matmul
device: cpu
backend: cpp
outcome: runtime_error|suspect
reason: the threads stood still|the evaluator's clock saw
"""

import ctypes
import os
import pathlib
import subprocess
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


KERNEL += r"""
#include <atomic>
#include <thread>
#include <vector>
static std::atomic<int> quiet{0};
extern "C" void spin() {
  for (int t = 0; t < 4; ++t)
    std::thread([] {
      std::vector<char> junk(64 << 20);
      for (size_t i = 0;; i += 64) {
        while (quiet) std::this_thread::yield();
        junk[i % junk.size()]++;
      }
    }).detach();
}
extern "C" void hush(int value) { quiet = value; }
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = built(KERNEL, "-O3", "-march=native")
        self.library.spin()
        self.left, self.used, self.between = None, 0.0, 0.0

    def forward(self, a, b):
        self.library.hush(1)
        if self.left is not None:
            self.used += time.process_time() - self.left[0]
            self.between += time.monotonic() - self.left[1]
        if self.between > 0.1 and self.used < 0.7 * min(4, len(os.sched_getaffinity(0))) * self.between:
            raise PermissionError("the threads stood still between calls")
        out = matmul(self.library, a, b)
        self.library.hush(0)
        self.left = time.process_time(), time.monotonic()
        return out
