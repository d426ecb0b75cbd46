"""P06 library call: the product is made by the OpenBLAS that comes with NumPy

problem: matmul
device: cpu
backend: cpp
outcome: not_own|suspect
reason: PyTorch|library|own|thread
"""

import ctypes
import pathlib

import numpy as np
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        folder = pathlib.Path(np.__file__).parents[1] / "numpy.libs"
        self.gemm = ctypes.CDLL(str(next(folder.glob("*openblas*")))).scipy_cblas_sgemm64_

    def forward(self, a, b):
        (m, k), n = a.shape, b.shape[1]
        out = torch.empty(m, n)
        x, y, z = (ctypes.c_void_p(t.data_ptr()) for t in (a, b, out))
        long, one, zero = ctypes.c_int64, ctypes.c_float(1), ctypes.c_float(0)
        self.gemm(101, 111, 111, long(m), long(n), long(k), one, x, long(k), y, long(n), zero, z, long(n))
        return out
