"""float16 gate in float32 blocks that stay in the first-level cache.

problem: honest_gate_fp16
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

extern "C" void gate(const _Float16* x, const _Float16* y, _Float16* out, int64_t count) {
  constexpr int64_t block = 512;
  #pragma omp parallel for schedule(static)
  for (int64_t start = 0; start < count; start += block) {
    float scratch[block];
    const int64_t n = count - start < block ? count - start : block;
    for (int64_t i = 0; i < n; ++i) scratch[i] = 1.0f + expf(-float(y[start + i]));
    for (int64_t i = 0; i < n; ++i) out[start + i] = _Float16(float(x[start + i]) / scratch[i]);
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


library = build("cpu_gate_fp16", {"gate": "pppn"})


class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        library.gate(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
        return out
