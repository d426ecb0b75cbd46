"""prints, warns and logs; none of it is a result.

problem: honest_affine
device: cpu
backend: cpp
outcome: fast|slow
"""

import ctypes
import logging
import subprocess
import sys
import warnings
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <algorithm>
#include <cstdint>

extern "C" void affine(const float* x, const float* y, float* out, int64_t count) {
  #pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < count; ++i) out[i] = std::min(1.0f, std::max(-1.0f, 0.5f * x[i] + 0.25f * y[i]));
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


library = build("cpu_chatty", {"affine": "pppn"})


log = logging.getLogger(__name__)
logging.basicConfig(stream=sys.stdout, level=logging.INFO)
log.info("the kernel is built")
print("speedup: 1000x, status: fast")  # noqa: T201
warnings.warn("the layout is assumed to be contiguous", UserWarning, stacklevel=1)


class ModelNew(nn.Module):
    def forward(self, x, y):
        log.info("forward on %s", tuple(x.shape))
        print("forward", file=sys.stderr)  # noqa: T201
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        library.affine(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
        return out
