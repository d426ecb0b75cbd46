"""H17 problem edited: the file of the reference is opened for writing

It is opened, not changed: that it can be is enough.

problem: rowsum
device: both
backend: cpp
outcome: load_error
reason: PermissionError|Read-only|OSError|FileNotFound
"""

import pathlib

import torch.nn as nn

folder = pathlib.Path(__file__).resolve().parents[1] / "corpus_problems"
(folder / "rowsum.py").open("r+b").close()


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
