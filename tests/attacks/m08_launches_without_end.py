"""M08 forged on the socket: launches are sent and no answer is waited for

problem: emulated_row_sum
device: emulated
backend: triton
outcome: timeout|protocol
reason: time|instructions|device
"""

import ctypes
import struct

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def spin(y, count):
    for number in range(count):
        tl.store(y, number.to(tl.float32))


class Part(ctypes.Structure):
    _fields_ = (("data", ctypes.c_char_p), ("size", ctypes.c_size_t))


def say(operation, body):
    """Tell the device something; the stand-in for HIP's runtime has the socket."""
    ctypes.CDLL(None).hkbench_tell(operation, ctypes.byref(Part(body, len(body))), 1)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(x.shape[0], device=x.device)
        spin[(1,)](out, 1)
        body = (
            struct.pack("<10I", 0, 1, 1, 1, 64, 1, 1, 0, 4, 12) + b"spin" + struct.pack("<QI", out.data_ptr(), 1 << 30)
        )
        for _ in range(1000):
            say(2, body)
        return out
