"""T25 slowed baseline: child processes keep the cores busy between calls

They stop themselves for its own forward pass. Where they get no processor time in between, it gives up.

problem: matmul
device: cpu
backend: cpp
outcome: runtime_error|limit
reason: the children stood still|processes|CPU time
"""

import ctypes
import os
import pathlib
import signal
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


def used_seconds(pid):
    """Processor time of a process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = built(KERNEL, "-O3", "-march=native")
        self.crew = []
        for _ in range(4):
            child = os.fork()
            if child == 0:
                while True:
                    pass
            self.crew.append(child)
        self.left, self.between, self.begun = None, 0.0, 0.0

    def signal_all(self, number):
        for child in self.crew:
            os.kill(child, number)

    def forward(self, a, b):
        self.signal_all(signal.SIGSTOP)
        used = sum(map(used_seconds, self.crew))
        if self.left is None:
            self.begun = used
        else:
            self.between += time.monotonic() - self.left
        if self.between > 0.1 and used - self.begun < 0.7 * min(4, len(os.sched_getaffinity(0))) * self.between:
            raise PermissionError("the children stood still between calls")
        out = matmul(self.library, a, b)
        self.signal_all(signal.SIGCONT)
        self.left = time.monotonic()
        return out
