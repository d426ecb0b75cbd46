"""std::thread, joined before forward returns.

problem: honest_rms_norm
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
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

extern "C" void rms_norm(const float* x, const float* gain, float* out, int64_t rows, int64_t columns, float eps) {
  const auto part = [=](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const float* row = x + r * columns;
      double squares = 0.0;
      for (int64_t c = 0; c < columns; ++c) squares += double(row[c]) * row[c];
      const float scale = float(1.0 / std::sqrt(squares / double(columns) + eps));
      for (int64_t c = 0; c < columns; ++c) out[r * columns + c] = row[c] * scale * gain[c];
    }
  };
  const int64_t count = 2;
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < count; ++t) threads.emplace_back(part, rows * t / count, rows * (t + 1) / count);
  for (std::thread& thread : threads) thread.join();
}
"""

KINDS = {"p": ctypes.c_void_p, "n": ctypes.c_int64, "f": ctypes.c_float}


def build(name, signatures):
    """Compiles SOURCE into the current folder and declares what its functions take."""
    Path(f"{name}.cpp").write_text(SOURCE)
    command = ["g++", "-O2", "-march=native", "-pthread", "-shared", "-fPIC", f"{name}.cpp", "-o", f"lib{name}.so"]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(Path(f"lib{name}.so").resolve()))
    for function, kinds in signatures.items():
        getattr(loaded, function).argtypes = [KINDS[kind] for kind in kinds]
        getattr(loaded, function).restype = None
    return loaded


library = build("cpu_std_threads", {"rms_norm": "pppnnf"})


class ModelNew(nn.Module):
    def __init__(self, hidden, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        library.rms_norm(x.data_ptr(), self.weight.data_ptr(), out.data_ptr(), *x.shape, self.eps)
        return out
