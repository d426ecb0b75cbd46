"""B06 output bomb: a few lines of source become an object file of many gigabytes

At most 12 GiB, in the private folder.

problem: rowsum
device: cpu
backend: cpp
outcome: load_error
reason: SIGXFSZ|No space
options: --memory-gib 2
"""

import pathlib
import subprocess

import torch.nn as nn

pathlib.Path("big.s").write_text(".data\n" + ".fill 1073741824, 1, 1\n" * 12)
subprocess.run(["as", "big.s", "-o", "big.o"], check=True)


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
