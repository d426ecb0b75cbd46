"""N10 stopped harness: every visible process of the same parent is stopped during forward

problem: rowsum
device: cpu
backend: cpp
outcome: runtime_error
reason: Permission|not permitted|ProcessLookup
"""

import os
import pathlib
import signal

import torch.nn as nn


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class ModelNew(nn.Module):
    def forward(self, x):
        server = parent(os.getppid())
        names = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        others = [pid for pid in names if parent(pid) == server and pid != os.getppid()]
        if not others:
            raise ProcessLookupError("no other process of the harness can be seen")
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        out = x.sum(dim=-1)
        for pid in others:
            os.kill(pid, signal.SIGCONT)
        return out
