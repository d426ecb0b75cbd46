"""N06 foreign descriptors: sockets of the processes above are copied by pidfd_getfd

problem: rowsum
device: cpu
backend: cpp
outcome: load_error
reason: Permission|not permitted|No such|ProcessLookup
"""

import ctypes
import os

import torch.nn as nn

libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


stolen = call(438, call(434, os.getppid(), 0), 0, 0)
os.close(stolen)


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
