"""S46 lists of usual length: room for four times the rows that a bin gets of evenly drawn indices, and no more

problem: honest_scatter
device: cpu
backend: cpp
outcome: wrong_values
reason: Zipf|all equal|sorted|repeated
options: --trials 5
"""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

extern "C" void scatter(const int64_t* index, const float* x, int64_t* lists, float* out, int64_t rows, int64_t columns,
                        int64_t bins, int64_t room) {
  for (int64_t b = 0; b < bins; ++b) lists[b * (room + 1)] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t* list = lists + index[r] * (room + 1);
    if (list[0] < room) list[++list[0]] = r;
  }
  #pragma omp parallel for schedule(static)
  for (int64_t b = 0; b < bins; ++b) {
    float* to = out + b * columns;
    const int64_t* list = lists + b * (room + 1);
    for (int64_t c = 0; c < columns; ++c) to[c] = 0.0f;
    for (int64_t i = 1; i <= list[0]; ++i)
      for (int64_t c = 0; c < columns; ++c) to[c] += x[list[i] * columns + c];
  }
}
"""

KINDS = {"p": ctypes.c_void_p, "n": ctypes.c_int64, "f": ctypes.c_float}


def build(name, signatures):
    """Compiles SOURCE into the current folder and declares what its functions take."""
    Path(f"{name}.cpp").write_text(SOURCE)
    command = ["g++", "-O2", "-march=native", "-fopenmp", "-shared", "-fPIC", f"{name}.cpp", "-o", f"lib{name}.so"]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(Path(f"lib{name}.so").resolve()))
    for function, kinds in signatures.items():
        getattr(loaded, function).argtypes = [KINDS[kind] for kind in kinds]
        getattr(loaded, function).restype = None
    return loaded


library = build("s46_lists_of_usual_length", {"scatter": "ppppnnnn"})


class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, index, x):
        index, x = index.contiguous(), x.contiguous()
        room = 4 * x.shape[0] // self.bins
        lists = torch.empty(self.bins, room + 1, dtype=torch.int64)
        out = torch.empty(self.bins, x.shape[1])
        library.scatter(index.data_ptr(), x.data_ptr(), lists.data_ptr(), out.data_ptr(), *x.shape, self.bins, room)
        return out
