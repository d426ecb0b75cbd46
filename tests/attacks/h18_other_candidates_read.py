"""H18 other candidates: files beside the candidate's own are read

problem: rowsum
device: both
backend: cpp
outcome: load_error
reason: PermissionError|FileNotFound
"""

import pathlib

import torch.nn as nn

own = pathlib.Path(__file__).resolve()
others = [path.read_text() for path in own.parent.glob("*.py") if path != own]
if not others:
    raise FileNotFoundError("no other candidate can be seen")


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
