"""M09 hostile code object: random bytes behind a right head

problem: emulated_softmax
device: emulated
backend: triton
outcome: unsupported|device_error
reason: code object|kernel image
"""

import ctypes
import random

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy(x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < count), mask=at < count)


def copied(x, out=None):
    out = torch.empty_like(x) if out is None else out
    copy[(triton.cdiv(out.numel(), 1024),)](x, out, out.numel(), BLOCK=1024)
    return out


def loaded(code):
    """Return what HIP's runtime says to a code object."""
    module, data = ctypes.c_void_p(), ctypes.create_string_buffer(code, len(code))
    return ctypes.CDLL(None).hipModuleLoadData(ctypes.byref(module), data)


class ModelNew(nn.Module):
    def forward(self, x):
        loaded(b"\x7fELF\x02\x01" + random.Random(5).randbytes(1 << 16))
        return copied(torch.softmax(x, dim=-1))
