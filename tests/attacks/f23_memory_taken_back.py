"""F23 memory that is gone: the output lies in a file that is cut short before it is read

problem: rowsum
device: cpu
backend: cpp
outcome: protocol|crash
reason: does not lie|ended
"""

import mmap
import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        file = os.memfd_create("output")
        os.ftruncate(file, 4 * x.shape[0])
        out = torch.frombuffer(mmap.mmap(file, 4 * x.shape[0]), dtype=torch.float32)
        out.copy_(x.sum(dim=-1))
        os.ftruncate(file, 0)
        os.close(file)
        return out
