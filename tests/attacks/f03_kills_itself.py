"""F03 dies in forward: the process sends itself SIGKILL

problem: rowsum
device: both
backend: cpp
outcome: crash|out_of_memory
reason: left|died|killed|answer
"""

import os
import signal

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGKILL)
