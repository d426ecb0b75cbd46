"""T23 work once, skip often: every fifth call computes, the others give its result again

problem: rowsum
device: cpu
backend: cpp
outcome: wrong_values|aliased_output
reason: are wrong|memory
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        if self.calls % 5 == 0:
            self.kept = x.sum(dim=-1)
        self.calls += 1
        return self.kept.clone()
