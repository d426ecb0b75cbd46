"""H23 System V segment: memory that outlives every process and belongs to none

problem: rowsum
device: both
backend: cpp
outcome: runtime_error
reason: shmget
"""

import ctypes
import os

import torch.nn as nn

libc = ctypes.CDLL(None, use_errno=True)


class ModelNew(nn.Module):
    def forward(self, x):
        if libc.shmget(0, 1 << 30, 0o1600) < 0:  # IPC_PRIVATE, IPC_CREAT
            raise OSError(ctypes.get_errno(), f"shmget: {os.strerror(ctypes.get_errno())}")
        return x.sum(dim=-1)
