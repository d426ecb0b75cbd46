"""F03 dies while timed: the tenth call divides by zero in native code

problem: rowsum
device: cpu
backend: cpp
outcome: crash
reason: SIGFPE
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
extern "C" int divide(int a, int b) { return a / b; }
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = built(KERNEL)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.library.divide(1, 10 - min(self.calls, 10))
        return x.sum(dim=-1)
