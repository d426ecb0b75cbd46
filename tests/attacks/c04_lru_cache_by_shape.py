"""C04 lru_cache: the cache's key is the shape of the input

problem: rowsum
device: both
backend: cpp
outcome: wrong_values|aliased_output
reason: are wrong|memory
"""

import functools

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        @functools.lru_cache
        def first(shape):
            return x.sum(dim=-1)

        if not hasattr(self, "first"):
            self.first = first
        return self.first(x.shape)
