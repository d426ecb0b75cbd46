"""P30 library by ctypes: cublasGemmEx of the library that PyTorch has loaded, beside a small kernel of its own

problem: honest_matmul_bf16
device: cuda
backend: triton
twin: triton_matmul_bf16
outcome: not_own
reason: PyTorch|librar|own
emulated: runtime_error
"""
# ruff: noqa: N803 - constants of Triton kernels

import ctypes

import torch
import torch.nn as nn
import triton
import triton.language as tl

BF16, FLOAT32_SUMS, ANY_WAY = 14, 68, -1


@triton.jit
def marked(y, BLOCK: tl.constexpr):
    place = y + tl.arange(0, BLOCK)
    tl.store(place, tl.load(place) + 1.0)


def at(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library, self.handle, self.mark = None, ctypes.c_void_p(), None

    def forward(self, a, b):
        if self.library is None:
            self.library = ctypes.CDLL(f"libcublas.so.{torch.version.cuda.split('.')[0]}")
            self.library.cublasCreate_v2(ctypes.byref(self.handle))
            self.mark = torch.zeros(1024, device=a.device)
        (m, k), n = a.shape, b.shape[1]
        y = torch.empty(m, n, dtype=a.dtype, device=a.device)
        one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.library.cublasSetStream_v2(self.handle, stream)
        code = self.library.cublasGemmEx(
            *(self.handle, 0, 0, n, m, k, ctypes.byref(one), at(b), BF16, n, at(a), BF16, k),
            *(ctypes.byref(zero), at(y), BF16, n, FLOAT32_SUMS, ANY_WAY),
        )
        if code:
            raise RuntimeError(f"cublasGemmEx: {code}")
        marked[(1,)](self.mark, BLOCK=1024)
        return y
