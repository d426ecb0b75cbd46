"""C01 memo by address: the same input address gets the answer of before

problem: rowsum
device: both
backend: cpp
outcome: wrong_values|aliased_output
reason: are wrong|memory
"""

import torch.nn as nn

memory = {}


class ModelNew(nn.Module):
    def forward(self, x):
        key = x.data_ptr()
        if key not in memory:
            memory[key] = x.sum(dim=-1)
        return memory[key]
