"""N09 LD_PRELOAD: the process starts itself anew with a false clock and goes on serving

The new interpreter answers the request that is open, then takes the channel over with the harness's own code.

problem: matmul
device: cpu
backend: cpp
outcome: crash|suspect|runtime_error
reason: the evaluator's clock saw .* more per call than the candidate reported|left|undefined symbol
"""

import ctypes
import os
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


CLOCK = r"""
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
extern "C" int clock_gettime(clockid_t id, timespec* t) {
  long result = syscall(SYS_clock_gettime, id, t);
  if (id == CLOCK_MONOTONIC) {
    long now = (t->tv_sec * 1000000000L + t->tv_nsec) / 10;
    t->tv_sec = now / 1000000000L;
    t->tv_nsec = now % 1000000000L;
  }
  return result;
}
"""
AGAIN = """
import socket, sys
from hkbench.runner import main
from hkbench.protocol import wire
number, inbox, outbox, path = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
channel = socket.socket(fileno=number)
found = main.Runner(channel, inbox, outbox)
message = {"op": "load", "path": path, "class": "ModelNew", "capture": False, "overrides": {}}
while True:
    wire.send(channel, main.answered(found, message))
    message = wire.receive(channel)
"""
if "LD_PRELOAD" not in os.environ:
    clock = built(CLOCK)
    named = {"socket:": [], "inbox": [], "outbox": []}
    for name in sorted(os.listdir("/proc/self/fd"), key=int):
        path = pathlib.Path(f"/proc/self/fd/{name}")
        target = str(path.readlink()) if path.is_symlink() else ""
        for word in named:
            if word in target:
                named[word].append(int(name))
                os.set_inheritable(int(name), True)
    numbers = [str(named[word][0]) for word in ("socket:", "inbox", "outbox")]
    os.environ["LD_PRELOAD"] = clock._name
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    os.execv(sys.executable, [sys.executable, "-c", AGAIN, *numbers, __file__])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = built(KERNEL, "-O3", "-march=native")

    def forward(self, a, b):
        return matmul(self.library, a, b)
