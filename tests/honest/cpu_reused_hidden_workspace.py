"""the hidden activations go to a workspace that lives as long as the module; only the result is new.

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


library = build("cpu_reused_hidden_workspace", {"gemm_kernel": "ppppnnnn"})


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))
        self.workspaces = {}

    def workspace(self, rows, columns):
        if (rows, columns) not in self.workspaces:
            self.workspaces[rows, columns] = torch.empty(rows, columns)
        return self.workspaces[rows, columns]

    def forward(self, x):
        x = x.contiguous()
        first, _, second = self.net
        hidden = self.workspace(x.shape[0], first.out_features)
        out = torch.empty_like(x)
        for source, linear, target, relu in ((x, first, hidden, 1), (hidden, second, out, 0)):
            library.gemm_kernel(
                source.data_ptr(),
                linear.weight.data_ptr(),
                linear.bias.data_ptr(),
                target.data_ptr(),
                target.shape[0],
                target.shape[1],
                source.shape[1],
                relu,
            )
        return out
