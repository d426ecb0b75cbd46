"""F06 leaves a grandchild: a process of a new session outlives its parent

problem: rowsum
device: cpu
backend: cpp
outcome: not_own
reason: PyTorch's
"""

import os
import signal
import time

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(600)
            os._exit(0)
        os.wait()

    def forward(self, x):
        return x.sum(dim=-1)
