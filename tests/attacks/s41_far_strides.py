"""S41 far apart: right sums that lie 8 MiB apart, in a mapping of which only single pages are there

problem: rowsum
device: cpu
backend: cpp
outcome: wrong_strides
reason: at most \\d+ are allowed
"""

import mmap

import torch
import torch.nn as nn

GAP = 1 << 21
MAP_NORESERVE = 0x4000


class ModelNew(nn.Module):
    def forward(self, x):
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
        room = mmap.mmap(-1, x.shape[0] * GAP * 4, flags=flags)
        out = torch.frombuffer(room, dtype=torch.float32).as_strided((x.shape[0],), (GAP,))
        out.copy_(x.sum(dim=-1))
        return out
