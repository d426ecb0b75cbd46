"""the result is a view of a buffer whose rows are padded to whole cache lines.

problem: honest_affine
device: cpu
backend: cpp
outcome: fast|slow
"""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <algorithm>
#include <cstdint>

extern "C" void affine(const float* x, const float* y, float* out, int64_t rows, int64_t columns, int64_t pitch) {
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const float sum = 0.5f * x[r * columns + c] + 0.25f * y[r * columns + c];
      out[r * pitch + c] = std::min(1.0f, std::max(-1.0f, sum));
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


library = build("cpu_padded_output", {"affine": "pppnnn"})


class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        rows, columns = x.shape
        pitch = (columns + 15) // 16 * 16 + 16
        padded = torch.empty(rows, pitch)
        library.affine(x.data_ptr(), y.data_ptr(), padded.data_ptr(), rows, columns, pitch)
        return padded[:, :columns]
