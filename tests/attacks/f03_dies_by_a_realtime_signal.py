"""F03 unusual death: the process ends itself by a signal that has no name of its own

problem: scale
device: both
backend: cpp
outcome: crash
reason: died by SIGRTMIN.7
"""

import os
import signal

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGRTMIN + 7)
        return x * 2
