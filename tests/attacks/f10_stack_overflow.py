"""F10 stack overflow: native recursion runs out of stack

problem: rowsum
device: cpu
backend: cpp
outcome: crash
reason: SIGSEGV|SIGBUS
"""

import ctypes
import pathlib
import subprocess

import torch.nn as nn


def built(source, *flags):
    """The C++ source as a loaded library, made in the current folder."""
    pathlib.Path("kernel.cpp").write_text(source)
    command = ["g++", "-O2", "-shared", "-fPIC", *flags, "kernel.cpp", "-o", "kernel.so", "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(pathlib.Path("kernel.so").resolve()))


KERNEL = r"""
extern "C" int deep(volatile int* n) {
  volatile int room[1024];
  room[0] = *n + 1;
  return deep(room) + room[0];
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = built(KERNEL, "-O0")

    def forward(self, x):
        self.library.deep(ctypes.byref(ctypes.c_int(0)))
        return x.sum(dim=-1)
