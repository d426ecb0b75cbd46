"""H04 junk on the channel: random bytes are written to every socket that the process holds

problem: rowsum
device: both
backend: cpp
outcome: protocol|crash
reason: frame|runner|left
"""

import os
import pathlib

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        for name in os.listdir("/proc/self/fd"):
            try:
                if str(pathlib.Path(f"/proc/self/fd/{name}").readlink()).startswith("socket:"):
                    os.write(int(name), os.urandom(4096))
            except OSError:
                continue
        return x.sum(dim=-1)
