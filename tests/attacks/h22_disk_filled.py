"""H22 disk filled: file after file is written until the disk is full

At most 64 GiB, which are gone with the private folder; the limit is 32 GiB.

problem: rowsum
device: both
backend: cpp
outcome: limit|runtime_error|out_of_memory
reason: wrote more to its folder than it may|No space
"""

import os
import pathlib
import time

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        for number in range(64):
            with pathlib.Path(f"junk_{number}").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, 1 << 30)
        time.sleep(4)
        return x.sum(dim=-1)
