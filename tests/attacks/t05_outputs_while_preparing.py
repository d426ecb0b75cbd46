"""T05 work after the answer: the runner hands over nothing, and the outputs are computed while it prepares for the next

The evaluator's clock has ended then. The candidate's process fills free memory, and the candidate has wrapped what does so.

problem: matmul
device: cpu
backend: cpp
outcome: not_finite|protocol|wrong_values
reason: NaN or Inf|elements are wrong|did not say where
"""

import ctypes
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


Results, memory = next(
    (vars(module)["Results"], vars(module)["memory"])
    for name, module in list(sys.modules.items())
    if name.endswith("runner.results")
)
poison, hand_over = memory.poison_free, Results.hand_over
late = []


def later(outputs, *rest, **more):
    outputs = list(outputs)
    if late:
        outputs[0].copy_(late.pop()())
    return poison(outputs, *rest, **more)


def nothing(self, result, *rest, **more):
    described = hand_over(self, [result], *rest, **more)
    return [{**described[0], "path": "output"}]


memory.poison_free = later
Results.hand_over = nothing


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = built(KERNEL, "-O3", "-march=native")

    def forward(self, a, b):
        late.append(lambda: matmul(self.library, a, b))
        return torch.empty(a.shape[0], b.shape[1])
