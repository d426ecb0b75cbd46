"""N13 woken by a timer: the kernel's timer sends SIGCONT to the stopped process, whose threads spin beside the baseline

problem: matmul
device: cpu
backend: cpp
outcome: load_error|suspect
reason: not permitted|while they were stopped
twin: cpu_row_matmul
"""

import ctypes
import os
import pathlib
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <atomic>
#include <signal.h>
#include <thread>
#include <time.h>
#include <vector>
static std::atomic<int> quiet{0};
static timer_t timer;
extern "C" void product(const float* a, const float* b, float* c, long m, long k, long n) {
  quiet = 1;
  for (long i = 0; i < m; ++i) {
    for (long j = 0; j < n; ++j) c[i * n + j] = 0;
    for (long l = 0; l < k; ++l)
      for (long j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
  }
  const itimerspec soon = {{0, 0}, {0, 2000000}};
  timer_settime(timer, 0, &soon, nullptr);
  quiet = 0;
}
extern "C" int begin(long threads) {
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGCONT;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer)) return 1;
  for (long t = 0; t < threads; ++t)
    std::thread([] {
      std::vector<char> junk(64 << 20);
      for (size_t i = 0;; i += 64) {
        while (quiet) std::this_thread::yield();
        junk[i % junk.size()]++;
      }
    }).detach();
  return 0;
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        pathlib.Path("kernel.cpp").write_text(SOURCE)
        command = ["g++", "-O3", "-march=native", "-shared", "-fPIC", "kernel.cpp", "-o", "kernel.so", "-lpthread"]
        subprocess.run(command, check=True)
        self.library = ctypes.CDLL(str(pathlib.Path("kernel.so").resolve()))
        if self.library.begin(ctypes.c_long(len(os.sched_getaffinity(0)))):
            raise PermissionError("a timer is not permitted")

    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        places = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, c)]
        self.library.product(*places, *map(ctypes.c_long, (*a.shape, b.shape[1])))
        return c
