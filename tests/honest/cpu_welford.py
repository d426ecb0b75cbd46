"""mean and variance by Welford's update, eight lanes merged at the end; two outputs.

problem: honest_moments
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
#include <cstdint>

extern "C" void moments(const float* x, float* means, float* variances, int64_t rows, int64_t columns) {
  constexpr int lanes = 8;
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * columns;
    float mean[lanes] = {}, m2[lanes] = {};
    int64_t steps = columns / lanes;
    for (int64_t s = 0; s < steps; ++s) {
      const float inverse = 1.0f / float(s + 1);
      for (int j = 0; j < lanes; ++j) {
        const float value = row[s * lanes + j], delta = value - mean[j];
        mean[j] += delta * inverse;
        m2[j] += delta * (value - mean[j]);
      }
    }
    double all = 0.0, total_mean = 0.0, total_m2 = 0.0;
    for (int j = 0; j < lanes && steps > 0; ++j) {
      const double delta = mean[j] - total_mean, next = all + steps;
      total_mean += delta * steps / next;
      total_m2 += m2[j] + delta * delta * all * steps / next;
      all = next;
    }
    for (int64_t c = steps * lanes; c < columns; ++c) {
      const double delta = row[c] - total_mean;
      all += 1.0;
      total_mean += delta / all;
      total_m2 += delta * (row[c] - total_mean);
    }
    means[r] = float(total_mean);
    variances[r] = float(total_m2 / all);
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


library = build("cpu_welford", {"moments": "pppnn"})


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        mean, variance = torch.empty(2, x.shape[0]).unbind()
        library.moments(x.data_ptr(), mean.data_ptr(), variance.data_ptr(), *x.shape)
        return mean, variance
