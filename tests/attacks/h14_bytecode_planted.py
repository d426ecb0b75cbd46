"""H14 bytecode planted: a file is left beside the harness's modules, for the next process to find

The file is removed again: that it could be written is enough.

problem: rowsum
device: both
backend: cpp
outcome: load_error
reason: PermissionError|Read-only|OSError|FileNotFound
"""

import os
import pathlib
import sys

import torch.nn as nn

planted = pathlib.Path(sys.modules["hkbench.runner.main"].__file__).parent / f"planted_{os.getpid()}.py"
planted.write_text("raise SystemExit(0)\n")
planted.unlink()


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
