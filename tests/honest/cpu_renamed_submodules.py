"""submodules have other names than the reference's; the parameters have the same shapes in the same order.

problem: honest_mlp
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

// out[m, n] = act(x[m, k] * w[n, k]^T + bias[n])
extern "C" void gemm_kernel(const float* x, const float* w, const float* bias, float* out, int64_t m, int64_t n,
                            int64_t k, int64_t relu) {
  #pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < m; ++i) {
    const float* __restrict__ a = x + i * k;
    for (int64_t j = 0; j < n; ++j) {
      const float* __restrict__ b = w + j * k;
      float sum = 0.0f;
      #pragma omp simd reduction(+ : sum)
      for (int64_t p = 0; p < k; ++p) sum += a[p] * b[p];
      sum += bias[j];
      out[i * n + j] = relu && sum < 0.0f ? 0.0f : sum;
    }
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


library = build("cpu_renamed_submodules", {"gemm_kernel": "ppppnnnn"})


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def layer(self, x, linear, relu):
        out = torch.empty(x.shape[0], linear.out_features)
        library.gemm_kernel(
            x.data_ptr(),
            linear.weight.data_ptr(),
            linear.bias.data_ptr(),
            out.data_ptr(),
            x.shape[0],
            linear.out_features,
            linear.in_features,
            relu,
        )
        return out

    def forward(self, x):
        return self.layer(self.layer(x.contiguous(), self.up, 1), self.down, 0)
