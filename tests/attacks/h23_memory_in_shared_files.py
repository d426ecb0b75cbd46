"""H22 memory in shared files: anonymous files take 4 GiB, which no process's heap shows

Written, not mapped: the pages belong to no process's resident set.

problem: rowsum
device: cpu
backend: cpp
outcome: out_of_memory|limit
reason: memory|limit
options: --memory-gib 2
"""

import os
import time

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.files = []

    def forward(self, x):
        if not self.files:
            self.files = [os.memfd_create(f"hoard_{number}") for number in range(4)]
            block = bytes(64 << 20)
            for file in self.files:
                for _ in range(16):
                    os.write(file, block)
            time.sleep(1)
        return x.sum(dim=-1)
