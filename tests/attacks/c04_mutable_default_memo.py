"""C04 mutable default: the first result is kept in a default argument

problem: rowsum
device: both
backend: cpp
outcome: wrong_values|aliased_output
reason: are wrong|memory
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, kept=[]):  # noqa: B006
        if not kept:
            kept.append(x.sum(dim=-1))
        return kept[0].clone()
