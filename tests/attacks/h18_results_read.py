"""H18 results read: the folders above the private one are searched for files of other evaluations

problem: rowsum
device: both
backend: cpp
outcome: load_error
reason: PermissionError|FileNotFound
"""

import pathlib

import torch.nn as nn

own = pathlib.Path.cwd().resolve()
others = [path for path in own.parent.parent.rglob("*") if path.is_file() and own not in path.parents]
others += [path for path in own.parent.parent.iterdir() if path not in (own, own.parent)]
if not others:
    raise FileNotFoundError("nothing can be seen of other evaluations")


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
