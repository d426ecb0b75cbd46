"""T18 now and then: a third of the calls after the first six return zeros

problem: rowsum
device: cpu
backend: cpp
outcome: wrong_values|not_repeatable
reason: are wrong|differ
"""

import os
import random

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.chance = random.Random(os.urandom(8))

    def forward(self, x):
        self.calls += 1
        if self.calls > 6 and self.chance.random() < 1 / 3:
            return torch.zeros(x.shape[0])
        return x.sum(dim=-1)
