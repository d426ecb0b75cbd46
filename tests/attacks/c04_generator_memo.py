"""C04 generator: a suspended generator keeps the first result

problem: rowsum
device: both
backend: cpp
outcome: wrong_values|aliased_output
reason: are wrong|memory
"""

import torch.nn as nn


def replay():
    x = yield None
    out = x.sum(dim=-1)
    while True:
        yield out.clone()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = replay()
        next(self.memory)

    def forward(self, x):
        return self.memory.send(x)
