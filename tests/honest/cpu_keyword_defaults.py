"""forward with keyword defaults and extra attributes on the module.

problem: honest_scaled_sum
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

extern "C" void scale_shift(const float* x, float* out, int64_t count, float scale, float shift) {
  #pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < count; ++i) out[i] = scale * x[i] + shift;
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


library = build("cpu_keyword_defaults", {"scale_shift": "ppnff"})


class ModelNew(nn.Module):
    note = "one fused pass"

    def __init__(self, *, verbose=False):
        super().__init__()
        self.verbose = verbose
        self.calls = 0

    def forward(self, x, scale=1.5, shift=-0.5):
        self.calls += 1
        x = x.contiguous()
        out = torch.empty_like(x)
        library.scale_shift(x.data_ptr(), out.data_ptr(), x.numel(), scale, shift)
        return out
