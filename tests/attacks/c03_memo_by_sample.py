"""C03 memo by a sample: inputs whose first elements are alike to the nearest ten count as the same

problem: rowsum
device: both
backend: cpp
outcome: wrong_values
reason: elements are wrong
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.key, self.out = None, None

    def forward(self, x):
        key = (round(x[0, 0].item(), -1), x.shape)
        if key != self.key:
            self.key, self.out = key, x.sum(dim=-1)
        return self.out.clone()
