"""F07 hangs: forward spins in native code and holds the interpreter

problem: rowsum
device: cpu
backend: cpp
outcome: timeout
reason: end within
options: --run-timeout 2
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
extern "C" void spin() {
  volatile bool on = true;
  while (on) {
  }
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = ctypes.PyDLL(built(KERNEL)._name)

    def forward(self, x):
        self.library.spin()
