"""H14 harness edited: the runner's clock is opened for writing, to be reloaded

The file is opened, not changed: that it can be is enough.

problem: rowsum
device: both
backend: cpp
outcome: load_error
reason: PermissionError|Read-only|OSError|FileNotFound
"""

import importlib
import pathlib
import sys

import torch.nn as nn

with pathlib.Path(sys.modules["hkbench.runner.clock"].__file__).open("r+b") as file:
    file.read()
importlib.reload(sys.modules["hkbench.runner.clock"])


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
