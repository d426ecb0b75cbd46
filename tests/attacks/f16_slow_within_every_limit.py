"""F16 slow within every limit: each call takes a second of the ten that it may, for as long as anybody asks

problem: scale
device: both
backend: cpp
outcome: timeout
reason: evaluation-timeout
options: --evaluation-timeout 4
"""

import time

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        time.sleep(1.0)
        return 2.0 * x + 1.0
