"""F07 stops itself: the process sends itself SIGSTOP

problem: rowsum
device: both
backend: cpp
outcome: timeout|crash|wrong_type
reason: end within|died|left|NoneType
options: --run-timeout 2
"""

import os
import signal

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGSTOP)
