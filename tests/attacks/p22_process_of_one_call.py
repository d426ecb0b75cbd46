"""P22 a process of one call: OpenBLAS multiplies in a child that begins once the sampler has looked for new processes

problem: matmul
device: cpu
backend: cpp
outcome: not_own
reason: allowed|own
"""

import ctypes
import os
import pathlib
import subprocess

import numpy as np
import torch
import torch.nn as nn

SOURCE = r"""
#include <chrono>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
typedef void (*Product)(int, int, int, long, long, long, float, const float*, long, const float*, long, float, float*,
                        long);
struct Task { Product product; const float *a, *b; float* c; long m, k, n; };
static int child(void* task) {
  const Task& t = *(Task*)task;
  t.product(101, 111, 111, t.m, t.n, t.k, 1, t.a, t.k, t.b, t.n, 0, t.c, t.n);
  _exit(0);
}
static volatile float sums[4096];
static char stack[1 << 23];
extern "C" void elsewhere(Product product, const float* a, const float* b, float* c, long m, long k, long n,
                          double filler) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(filler);
  while (std::chrono::steady_clock::now() < end)
    for (int i = 0; i < 4096; ++i) sums[i] = sums[i] + 1;
  Task task = {product, a, b, c, m, k, n};
  const int pid = clone(child, stack + sizeof stack, CLONE_VM | SIGCHLD, &task);
  int status;
  waitpid(pid, &status, 0);
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        pathlib.Path("elsewhere.cpp").write_text(SOURCE)
        subprocess.run(["g++", "-O2", "-shared", "-fPIC", "elsewhere.cpp", "-o", "elsewhere.so"], check=True)
        self.elsewhere = ctypes.CDLL(str(pathlib.Path("elsewhere.so").resolve())).elsewhere
        folder = pathlib.Path(np.__file__).parents[1] / "numpy.libs"
        library = ctypes.CDLL(str(next(folder.glob("*openblas*"))))
        library.scipy_openblas_set_num_threads64_(1)
        self.product = ctypes.cast(library.scipy_cblas_sgemm64_, ctypes.c_void_p)

    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        places = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, c)]
        self.elsewhere(self.product, *places, *map(ctypes.c_long, (*a.shape, b.shape[1])), ctypes.c_double(1e-3))
        return c
