"""M08 forged on the socket: an allocation is announced over another one

problem: emulated_softmax
device: emulated
backend: triton
outcome: protocol
reason: device was sent
"""

import ctypes
import struct

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


class Part(ctypes.Structure):
    _fields_ = (("data", ctypes.c_char_p), ("size", ctypes.c_size_t))


def say(operation, body):
    """Tell the device something; the stand-in for HIP's runtime has the socket."""
    ctypes.CDLL(None).hkbench_tell(operation, ctypes.byref(Part(body, len(body))), 1)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        say(3, struct.pack("<QQ", out.data_ptr() + 256, out.nbytes))
        return copied(x, out)
