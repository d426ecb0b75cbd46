"""N06 foreign memory: the memory of the processes above is opened

problem: rowsum
device: both
backend: cpp
outcome: load_error
reason: PermissionError|FileNotFound|ProcessLookup
"""

import os
import pathlib

import torch.nn as nn

pid = int(pathlib.Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
line = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()[0]
with pathlib.Path(f"/proc/{pid}/mem").open("rb") as memory:
    memory.seek(int(line.split("-")[0], 16))
    memory.read(64)


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
