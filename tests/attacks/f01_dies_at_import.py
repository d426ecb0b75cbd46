"""F01 dies at import: a null pointer is read while the file is imported

problem: rowsum
device: both
backend: cpp
outcome: crash
reason: SIGSEGV
"""

import ctypes

import torch.nn as nn

ctypes.string_at(0)


class ModelNew(nn.Module):
    pass
