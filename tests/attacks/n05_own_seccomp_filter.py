"""N05 own filter: a seccomp filter makes every write to the channel fail

problem: rowsum
device: cpu
backend: cpp
outcome: crash
reason: left with exit code
"""

import ctypes
import struct

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        libc = ctypes.CDLL(None, use_errno=True)
        rules = [(0x20, 0, 0, 0), (0x15, 0, 1, 44), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
        code = b"".join(struct.pack("HBBI", *rule) for rule in rules)
        buffer = ctypes.create_string_buffer(code)
        program = struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(buffer))
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.create_string_buffer(program), 0, 0):
            raise PermissionError(ctypes.get_errno(), "no filter of its own")
        return x.sum(dim=-1)
