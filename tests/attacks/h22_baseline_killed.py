"""H22 baseline killed: the other runner gets SIGKILL before it is timed

problem: rowsum
device: both
backend: cpp
outcome: load_error
reason: Permission|not permitted|ProcessLookup
"""

import os
import pathlib
import signal

import torch.nn as nn


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        server, mine = parent(os.getppid()), {os.getpid(), os.getppid()}
        names = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        guards = [pid for pid in names if pid not in mine and parent(pid) == server]
        others = [pid for pid in names if pid not in mine and parent(pid) in guards]
        if not others:
            raise ProcessLookupError("no other process of the harness can be seen")
        for pid in others:
            os.kill(pid, signal.SIGKILL)

    def forward(self, x):
        return x.sum(dim=-1)
