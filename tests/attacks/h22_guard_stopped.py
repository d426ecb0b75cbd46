"""H22 guard stopped: the parent process gets SIGSTOP, so that limits are no longer checked

problem: rowsum
device: both
backend: cpp
outcome: load_error
reason: Permission|not permitted|ProcessLookup
"""

import os
import signal

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        os.kill(os.getppid(), signal.SIGSTOP)

    def forward(self, x):
        return x.sum(dim=-1)
