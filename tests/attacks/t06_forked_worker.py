"""T06 fork: a child process does the work in shared memory while forward returns

problem: rowsum
device: cpu
backend: cpp
outcome: wrong_values|not_finite|runtime_error|not_repeatable
reason: elements are wrong|Permission|unavailable
"""

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(x.shape[0]).share_memory_()
        if os.fork() == 0:
            total = x.numpy().sum(axis=-1)
            out.numpy()[:] = total
            os._exit(0)
        return out
