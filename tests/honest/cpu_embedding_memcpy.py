"""an embedding by memcpy of whole rows.

problem: honest_embedding
device: cpu
backend: cpp
outcome: fast|slow
"""

import ctypes
import subprocess
from pathlib import Path

from torch import nn

SOURCE = r"""
#include <cstdint>
#include <cstring>

extern "C" void gather(const int64_t* tokens, const float* table, float* out, int64_t count, int64_t width) {
  #pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < width; ++j) out[i * width + j] = table[tokens[i] * width + j];
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


library = build("cpu_embedding_memcpy", {"gather": "pppnn"})


class ModelNew(nn.Module):
    def __init__(self, vocabulary, hidden):
        super().__init__()
        self.table = nn.Embedding(vocabulary, hidden)

    def forward(self, tokens):
        tokens = tokens.contiguous()
        table = self.table.weight
        out = table.new_empty(tokens.shape[0], table.shape[1])
        library.gather(tokens.data_ptr(), table.data_ptr(), out.data_ptr(), *out.shape)
        return out
