"""N06 ptrace: the guard is seized as a debugger would

problem: rowsum
device: cpu
backend: cpp
outcome: load_error
reason: Permission|not permitted|ProcessLookup
"""

import ctypes
import os

import torch.nn as nn

libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(0x4206, os.getppid(), None, None):
    raise PermissionError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
